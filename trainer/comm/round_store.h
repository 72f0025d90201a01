// The store through which the ranks of a round meet, and the roll call before they connect.
//
// A rank that cannot read its options or its data never joins, and the others would wait for it
// until they time out. So each rank says in the store that it is fit, and all wait for the same
// key: the last rank to be fit sets it, or a rank that is not fit sets it to the reason. In the
// same way they find out that some of them have GPUs and others have not, who would never meet.
#pragma once

#include <chrono>
#include <string>

#include <c10/util/intrusive_ptr.h>

#include "absl/status/status.h"

#include "trainer/worker/environment.h"

namespace c10d {
class Store;
}

namespace muster::trainer {

// Opens this round's part of the TCPStore at env.master_addr:env.master_port. Rank 0 serves that
// store unless the launcher does. A world of 1 uses no network. `timeout` limits this call and each
// wait for a key. Throws what c10d throws.
c10::intrusive_ptr<c10d::Store> OpenRoundStore(const Environment& env,
                                               std::chrono::milliseconds timeout);

// Says that this rank is fit, and waits for the others. OK when all ranks are fit. As soon as one
// is not, returns its failure, with its rank in front; the rank that serves the store first waits
// until all others know of it. `why_not_nccl` is empty on a rank that uses NCCL, and else the
// reason as a phrase: kInvalidArgument on all ranks when some use it and others do not. Throws what
// c10d throws, also when the store's timeout expires.
absl::Status CallRoll(c10d::Store& store, const Environment& env, const std::string& why_not_nccl);

// Tells the other ranks that this one is not fit because of `failure`. For a rank that has not
// opened the store. Blocks for at most `timeout` while the store cannot be reached or, on the rank
// that serves it, until all others know. Does nothing in a world of 1. Throws nothing.
void TellUnfit(const Environment& env, const absl::Status& failure,
               std::chrono::milliseconds timeout);

}  // namespace muster::trainer
