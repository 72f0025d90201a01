// The ranks of a job whose traffic with the store was written down.
#pragma once

#include <cstdint>
#include <string>

namespace muster::bench {

// Plays a file of lines "RANK OP KEY NUMBER", each rank's in order:
//
//   set      NUMBER bytes
//   add      NUMBER
//   wait, get
//   gather   goes on when all ranks have come here; nothing is sent
//
// Each rank has a connection of its own and sends a request when it has the reply to the one
// before, as c10d's client does; like that of PyTorch before 2.1 it sends the opcode in a segment
// of its own and has a second connection that stays idle. Prints the milliseconds from the first
// request, when all are connected, until the last rank has its last reply, and how many requests
// there were.
void MeasureReplay(std::uint16_t port, const std::string& file);

}  // namespace muster::bench
