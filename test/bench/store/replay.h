// Replays the recorded store traffic of a job's ranks.
#pragma once

#include <cstdint>
#include <string>

namespace muster::bench {

// Replays a file of lines "RANK OP KEY NUMBER", each rank's in order:
//
//   set      NUMBER bytes
//   add      NUMBER
//   wait, get
//   gather   waits until all ranks have come here; sends nothing
//
// Each rank has its own connection and sends a request once it has the previous reply, as c10d's
// client does. Like PyTorch's client before 2.1, it sends the opcode in a separate segment, and has
// a second, idle connection. Prints the milliseconds from the first request, when all are
// connected, until the last rank has its last reply, and the number of requests.
void MeasureReplay(std::uint16_t port, const std::string& file);

}  // namespace muster::bench
