#include "trainer/parallel/comm_hooks.h"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace muster::trainer {
namespace {

using Future = c10::intrusive_ptr<c10::ivalue::Future>;

class ThreadHook : public c10d::CommHookInterface {
 public:
  ThreadHook(Group& group, CommHook compression)
      : group_(group),
        scale_(1.0 / group.size()),
        compression_(compression),
        thread_([this] { Work(); }) {}

  ~ThreadHook() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    work_.notify_one();
    thread_.join();
  }

  Future runHook(c10d::GradBucket& bucket) override {
    Job job = {bucket.getBuffer(),
               c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get())};
    Future future = job.future;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      // After the last bucket backward() has nothing left to compute, so this thread averages it
      // itself instead of waking another one up and waiting for it.
      if (bucket.isLast() && queue_.empty() && !working_) {
        lock.unlock();
        Finish(job, Waiting::kSpin);
        return future;
      }
      queue_.push_back(std::move(job));
    }
    work_.notify_one();
    return future;
  }

  at::Tensor parseHookResult(const c10::IValue& result) override { return result.toTensor(); }

 private:
  struct Job {
    at::Tensor bucket;
    Future future;
  };

  void Work() {
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex_);
      work_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      Job job = std::move(queue_.front());
      queue_.pop_front();
      working_ = true;
      lock.unlock();
      Finish(job, Waiting::kSleep);
      lock.lock();
      working_ = false;
    }
  }

  void Finish(Job& job, Waiting waiting) {
    try {
      Average(job.bucket, waiting);
      job.future->markCompleted(job.bucket);
    } catch (...) {
      job.future->setError(std::current_exception());
    }
  }

  void Average(at::Tensor& bucket, Waiting waiting) {
    const at::NoGradGuard no_grad;
    if (compression_ == CommHook::kNone) {
      group_.AllReduce(bucket, Use::kGradients, scale_, waiting);
      return;
    }
    at::Tensor narrow = bucket.to(compression_ == CommHook::kFloat16 ? at::kHalf : at::kBFloat16);
    group_.AllReduce(narrow, Use::kGradients, scale_, waiting);
    bucket.copy_(narrow);
  }

  Group& group_;
  const double scale_;
  const CommHook compression_;

  std::mutex mutex_;  // guards the members down to the thread
  std::condition_variable work_;
  std::deque<Job> queue_;
  bool working_ = false;  // the thread is averaging a bucket
  bool stopping_ = false;

  std::thread thread_;
};

class BFloat16Hook : public c10d::CommHookInterface {
 public:
  explicit BFloat16Hook(Group& group) : group_(group) {}

  // Called on the thread that runs backward(), so that all ranks have the same order of operations.
  Future runHook(c10d::GradBucket& bucket) override {
    const at::NoGradGuard no_grad;
    at::Tensor buffer = bucket.getBuffer();
    return buffer.is_cpu() ? AddUpHere(buffer) : AddUpThere(buffer);
  }

  at::Tensor parseHookResult(const c10::IValue& result) override { return result.toTensor(); }

 private:
  Future AddUpHere(const at::Tensor& buffer) const {
    const PendingGather gather =
        group_.AllGatherAsync(buffer.to(at::kBFloat16).view(at::kByte), Use::kGradients);
    return Then(gather.work, [all = gather.tensors, buffer] {
      at::Tensor sum = all[0].view(at::kBFloat16).to(at::kFloat);
      for (std::size_t rank = 1; rank < all.size(); ++rank) {
        sum.add_(all[rank].view(at::kBFloat16));
      }
      buffer.copy_(sum.div_(static_cast<double>(all.size())));
      return buffer;
    });
  }

  Future AddUpThere(const at::Tensor& buffer) const {
    // Divided first, as c10d's float16 hook does, which keeps the sum in range.
    const at::Tensor sum = buffer.to(at::kBFloat16).div_(static_cast<double>(group_.size()));
    const PendingWork work = group_.AllReduceAsync(sum, Use::kGradients);
    return Then(work, [sum, buffer] { return buffer.copy_(sum); });
  }

  template <typename Work, typename Finish>
  static Future Then(const Work& work, Finish finish) {
    return work->getFuture()->then(
        [finish](c10::ivalue::Future& done) -> c10::IValue {
          if (done.hasError()) std::rethrow_exception(done.exception_ptr());
          const at::NoGradGuard no_grad;
          return finish();
        },
        c10::TensorType::get());
  }

  Group& group_;
};

}  // namespace

std::unique_ptr<c10d::CommHookInterface> MakeThreadHook(Group& group, CommHook compression) {
  return std::make_unique<ThreadHook>(group, compression);
}

std::unique_ptr<c10d::CommHookInterface> MakeBFloat16Hook(Group& group) {
  return std::make_unique<BFloat16Hook>(group);
}

namespace {

// A sentence with more names than this is unreadable.
constexpr std::size_t kMostNames = 8;

// The names behind the indices in "Parameter indices which did not receive grad for rank 0: 2 3"
// (c10d reducer.cpp, ensure_prior_reduction_finished).
std::vector<std::string> Missing(const std::string& message,
                                 const std::vector<std::string>& names) {
  const std::string intro = "indices which did not receive grad for rank ";
  std::size_t at = message.find(intro);
  if (at != std::string::npos) at = message.find(": ", at);
  if (at == std::string::npos) return {};
  std::vector<std::string> missing;
  const std::string numbers = message.substr(at + 2, message.find('\n', at) - at - 2);
  const std::vector<std::string> words =
      absl::StrSplit(numbers, absl::ByAnyChar(" ,."), absl::SkipEmpty());
  for (const std::string& word : words) {
    std::size_t index = 0;
    if (!absl::SimpleAtoi(word, &index) || index >= names.size()) break;
    missing.push_back(names[index]);
  }
  return missing;
}

}  // namespace

std::optional<std::string> UnusedParametersSentence(const std::string& message,
                                                    const std::vector<std::string>& names, int rank,
                                                    bool find_unused_parameters) {
  if (!absl::StrContains(message, "Expected to have finished reduction")) return std::nullopt;
  std::vector<std::string> missing = Missing(message, names);
  std::string which = missing.size() == 1 ? "parameter " : "parameters ";
  if (missing.empty()) {
    which = "some parameters";
  } else {
    const std::size_t more = missing.size() - std::min(missing.size(), kMostNames);
    missing.resize(missing.size() - more);
    absl::StrAppend(&which, absl::StrJoin(missing, ", "));
    if (more > 0) absl::StrAppend(&which, " and ", more, " more");
  }
  return absl::StrCat("the last step's loss on rank ", rank, " did not depend on ", which,
                      ", so not all gradients were averaged: ",
                      find_unused_parameters
                          ? "use every output of the model in the loss"
                          : "set find_unused_parameters (--find-unused-parameters), or leave them "
                            "out of the model");
}

}  // namespace muster::trainer
