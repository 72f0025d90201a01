// How full buckets of gradients are averaged, where it is not c10d's own all-reduce.
#pragma once

#include <memory>

#include "trainer/comm/all_reducer.h"
#include "trainer/parallel/ddp.h"

namespace c10d {
class CommHookInterface;
}

namespace muster::trainer {

// Averages buckets by `reducer` in a thread of its own, in the order in which they get full, while
// the gradients of the next ones are computed; the last one, if no other is under way, in the
// thread that computed it. A bucket that cannot be averaged makes backward()
// throw what the reducer throws.
std::unique_ptr<c10d::CommHookInterface> MakeThreadHook(std::shared_ptr<AllReducer> reducer,
                                                        int ranks, CommHook compression);

// Sends buckets as bfloat16 by c10d. NCCL adds them up as such; Gloo, some versions of which know
// no bfloat16, carries everybody's to everybody as bytes, and they are added up in float.
std::unique_ptr<c10d::CommHookInterface> MakeBFloat16Hook(ProcessGroup& group);

}  // namespace muster::trainer
