// Ways to average buckets of gradients other than c10d's own all-reduce.
#pragma once

#include <memory>

#include "trainer/comm/group.h"
#include "trainer/parallel/ddp.h"

namespace c10d {
class CommHookInterface;
}

namespace muster::trainer {

// Averages buckets with group.AllReduce() on a thread of its own, in the order in which they fill
// up, while backward() computes the gradients of the next ones. The last bucket is averaged on the
// thread that runs backward() if no other bucket is pending. When a bucket cannot be averaged,
// backward() throws what AllReduce() throws.
std::unique_ptr<c10d::CommHookInterface> MakeThreadHook(Group& group, CommHook compression);

// Sends buckets as bfloat16 through c10d. NCCL sums them as bfloat16. Gloo, which does not support
// bfloat16 in all versions, gathers every rank's bucket as bytes, and each rank sums them in float.
std::unique_ptr<c10d::CommHookInterface> MakeBFloat16Hook(Group& group);

}  // namespace muster::trainer
