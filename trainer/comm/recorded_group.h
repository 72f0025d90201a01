// A c10d group whose operations are recorded.
#pragma once

#include <memory>

#include <c10/util/intrusive_ptr.h>

#include "trainer/comm/flight_recorder.h"

namespace c10d {
class ProcessGroup;
}

namespace muster::trainer {

// Forwards operations to `inner` and records them in `flights` as those of `part`; their recorder
// must outlive the result.
// Only allreduce, allgather and broadcast are supported: the trainer and c10d's Reducer use no
// others.
c10::intrusive_ptr<c10d::ProcessGroup> Recorded(c10::intrusive_ptr<c10d::ProcessGroup> inner,
                                                std::shared_ptr<GroupFlights> flights,
                                                FlightPart part);

}  // namespace muster::trainer
