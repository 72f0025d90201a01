// The store through which the ranks of a round meet, and the roll call before they connect.
//
// A rank that cannot read its options or its data never joins, and the others would wait for it
// until they time out. So each rank announces in the store that it is ready, and all wait for the
// same key: the last ready rank sets it, or a rank that failed sets it to the reason. This also
// detects that only some ranks have GPUs: those would never connect to the others.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <c10/util/intrusive_ptr.h>

#include "absl/status/status.h"

#include "trainer/worker/launcher_link.h"

namespace c10d {
class Store;
}

namespace muster::trainer {

// Opens this round's part of the TCPStore at env.master_addr:env.master_port. Rank 0 serves the
// store unless the launcher does. A world of 1 uses no network. `timeout` limits this call and each
// wait for a key. Throws what c10d throws.
c10::intrusive_ptr<c10d::Store> OpenRoundStore(const Environment& env,
                                               std::chrono::milliseconds timeout);

// Announces that this rank is ready, and waits for the others. OK if all are. As soon as one has
// failed, returns its failure, prefixed with its rank; the rank that serves the store first waits
// until all others know. `why_not_nccl` is empty on a rank that uses NCCL, and else the reason as a
// phrase: kInvalidArgument on all ranks if some use it and others do not. Throws what c10d throws,
// also if the store's timeout expires.
absl::Status CallRoll(c10d::Store& store, const Environment& env, const std::string& why_not_nccl);

// Announces to the other ranks that this one has failed. For a rank that has not opened the store.
// Blocks for at most `timeout` while the store cannot be reached or, on the rank that serves it,
// until all others know. Does nothing in a world of 1. Throws nothing.
void TellUnfit(const Environment& env, const absl::Status& failure,
               std::chrono::milliseconds timeout);

// A timeout for calls that have none.

// Returns or throws the result of `call`, which runs on a separate thread. After `timeout`, throws
// std::runtime_error, "`what` was not done within 300 s", and abandons that thread: everything
// `call` refers to must live as long as the process, which should then exit without destroying what
// the thread may be using.
template <typename T>
T CallWithin(std::chrono::milliseconds timeout, const std::string& what, std::function<T()> call) {
  std::packaged_task<T()> task(std::move(call));
  std::future<T> result = task.get_future();
  std::thread(std::move(task)).detach();
  if (result.wait_for(timeout) == std::future_status::timeout) {
    throw std::runtime_error(
        what + " was not done within " +
        std::to_string(std::chrono::duration_cast<std::chrono::seconds>(timeout).count()) + " s");
  }
  return result.get();
}

}  // namespace muster::trainer
