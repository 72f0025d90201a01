// A c10d group whose operations are recorded and counted.
#pragma once

#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include "trainer/comm/group_facts.h"

namespace muster::trainer {

// Forwards operations to `inner`, records them in `meter` as those of `part`, and counts their
// bytes for `use`; without a use, they are a part of an operation that is counted elsewhere. The
// whole numbers by which c10d's Reducer agrees on its buckets are no gradients, but Use::kOther.
// The meter's recorder must outlive the result.
//
// Only allreduce, allgather, _allgather_base, broadcast, _reduce_scatter_base, alltoall_base (which
// a reduce-scatter is made of where there is none), send and recv are supported.
c10::intrusive_ptr<c10d::ProcessGroup> Recorded(c10::intrusive_ptr<c10d::ProcessGroup> inner,
                                                std::shared_ptr<GroupMeter> meter, FlightPart part,
                                                std::optional<Use> use);

// Sums `tensor` (on the CPU or a GPU, contiguous) in place over the ranks of `group`. Gloo would
// add halves up in half precision, and some versions of it know no bfloat16, so those travel as
// float.
void SumOver(c10d::ProcessGroup& group, at::Tensor& tensor);

}  // namespace muster::trainer
