// Ways to average buckets of gradients other than c10d's own all-reduce.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/comm/group.h"
#include "trainer/parallel/ddp.h"

namespace c10d {
class CommHookInterface;
}

namespace muster::trainer {

// Averages buckets with group.AllReduce() on a separate thread, in the order in which they fill up,
// while backward() computes the gradients of the next ones. The last bucket is averaged on the
// thread that runs backward() if no other bucket is pending. When a bucket cannot be averaged,
// backward() throws what AllReduce() throws.
std::unique_ptr<c10d::CommHookInterface> MakeThreadHook(Group& group, CommHook compression);

// Sends buckets as bfloat16 through c10d. NCCL sums them as bfloat16. Gloo, which does not support
// bfloat16 in all versions, gathers every rank's bucket as bytes, and each rank sums them in float.
std::unique_ptr<c10d::CommHookInterface> MakeBFloat16Hook(Group& group);

// Turns c10d's error about parameters left unused in a step into a helpful sentence.

// When gradients were missing in a step, c10d::Reducer throws at the start of the next one
// ("Expected to have finished reduction in the prior iteration"). Returns one sentence for that
// `message` that says which of `names` (in the Reducer's order) were unused on `rank`, and what to
// change. nullopt if `message` is about something else.
std::optional<std::string> UnusedParametersSentence(const std::string& message,
                                                    const std::vector<std::string>& names, int rank,
                                                    bool find_unused_parameters);

}  // namespace muster::trainer
