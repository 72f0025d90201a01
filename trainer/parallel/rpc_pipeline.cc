#include "trainer/parallel/rpc_pipeline.h"

#include <algorithm>
#include <chrono>
#include <compare>
#include <condition_variable>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster::trainer {
namespace {

// How often a waiter reads the clock. More than twice that between two readings means that its
// process was stopped.
constexpr std::chrono::milliseconds kLookEvery(100);

constexpr char kForward[] = "forward";
constexpr char kBackward[] = "backward";

using Tensors = RemoteCalls::Tensors;

std::vector<int> MicroBatchesOf(const PipelineStep& step) {
  std::vector<int> all;
  for (int i = 0; i < static_cast<int>(step.input_sizes.size()); ++i) {
    if (HasSamples(step, i)) all.push_back(i);
  }
  return all;
}

}  // namespace

struct RpcPipeline::Task {
  bool backward = false;
  int micro_batch = 0;

  auto operator<=>(const Task&) const = default;
  std::string Text() const {
    return absl::StrCat(backward ? kBackward : kForward, " ", micro_batch);
  }
};

// What a forward keeps for its backward.
struct RpcPipeline::Pass {
  at::Tensor inputs;
  at::Tensor outputs;  // for the last part, the loss

  void Backward(const at::Tensor& gradient) const {
    if (outputs.requires_grad()) torch::autograd::backward({outputs}, {gradient});
  }
  // Call it after that. The previous rank waits for it even if nothing depends on its outputs.
  at::Tensor GradientOfInputs() const {
    return inputs.grad().defined() ? inputs.grad() : at::zeros_like(inputs);
  }
};

// Other members' requests and answers, until this one processes them. Thread-safe.
class RpcPipeline::Mail {
 public:
  struct Letter {
    Tensors tensors;
    RemoteCalls::Answer answer;  // for a request
  };

  void Put(const Task& task, Letter letter) {
    const std::lock_guard lock(mutex_);
    letters_[task] = std::move(letter);
    changed_.notify_one();
  }

  // Member `rank` of the world has been asked for a letter that Put() will deliver.
  void Expect(const Task& task, int rank) {
    const std::lock_guard lock(mutex_);
    asked_[task] = rank;
  }

  // Nothing more will arrive, for that reason; the first one counts.
  void Fail(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = why;
    changed_.notify_one();
  }

  // Waits for at most `timeout`, not counting time in which this process was stopped: a job that is
  // stopped and continued as a whole carries on. Throws std::runtime_error, which names the member
  // being waited for, or else `master`.
  Letter Take(const Task& task, std::chrono::milliseconds timeout, const std::string& master = "") {
    using std::chrono::steady_clock;
    const auto start = steady_clock::now();
    std::unique_lock lock(mutex_);
    const auto came = [&] { return letters_.contains(task) || !failure_.empty(); };
    steady_clock::duration counted(0);
    while (!came() && counted < timeout) {
      const auto looked = steady_clock::now();
      changed_.wait_for(lock, std::min<steady_clock::duration>(timeout - counted, kLookEvery),
                        came);
      counted += std::min<steady_clock::duration>(steady_clock::now() - looked, 2 * kLookEvery);
    }
    waited_ += steady_clock::now() - start;
    if (!failure_.empty()) throw std::runtime_error(failure_);
    if (!came()) {
      throw std::runtime_error(
          absl::StrCat("wait for ", task.Text(), " of the pipeline: nothing came from ",
                       asked_.contains(task) ? absl::StrCat("rank ", asked_.at(task)) : master,
                       " within ", timeout.count() / 1000.0, " s"));
    }
    asked_.erase(task);
    return std::move(letters_.extract(task).mapped());
  }

  // In all calls of Take() since the last call of this.
  Milliseconds TakeWaited() { return std::exchange(waited_, Milliseconds(0)); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Task, Letter> letters_;
  std::map<Task, int> asked_;
  std::string failure_;
  Milliseconds waited_{0};  // of the thread that calls Take()
};

RpcPipeline::RpcPipeline(Group& group)
    : group_(group),
      mail_(std::make_unique<Mail>()),
      calls_(group.MakeRemoteCalls([mail = mail_.get()](const std::string& what, Tensors arguments,
                                                        RemoteCalls::Answer answer) {
        const std::vector<std::string> words = absl::StrSplit(what, ' ');
        Task task = {.backward = words[0] == kBackward};
        if (words.size() != 2 || (!task.backward && words[0] != kForward) ||
            !absl::SimpleAtoi(words[1], &task.micro_batch) || arguments.size() > 1) {
          answer(
              absl::InvalidArgumentError("a pipeline is asked for \"forward N\" with a tensor, "
                                         "or for \"backward N\""));
          return;
        }
        mail->Put(task, {std::move(arguments), std::move(answer)});
      })) {
  // There may be no pending call that would fail with it. The master always has one.
  if (group.rank() == 0) return;
  calls_->Watch(0, [mail = mail_.get(), master = group.members().front()] {
    mail->Fail(absl::StrCat("the master of the pipeline, rank ", master, ", is gone"));
  });
}

RpcPipeline::~RpcPipeline() = default;

void RpcPipeline::Train(const PipelineStep& step) {
  Play(step, /*training=*/true);
}

void RpcPipeline::Evaluate(const PipelineStep& step) {
  const at::NoGradGuard no_grad;
  Play(step, /*training=*/false);
}

void RpcPipeline::Play(const PipelineStep& step, bool training) {
  const auto start = std::chrono::steady_clock::now();
  if (group_.rank() == 0) {
    Lead(step, training);
  } else {
    Serve(step, training);
  }
  times_ = {std::chrono::steady_clock::now() - start, mail_->TakeWaited()};
}

void RpcPipeline::Lead(const PipelineStep& step, bool training) {
  const std::vector<int> micro_batches = MicroBatchesOf(step);
  const int last = group_.size() - 1;
  std::map<int, Pass> passes;
  for (const int i : micro_batches) {
    Pass pass = {.inputs = step.inputs(i)};
    pass.outputs = step.forward(/*chunk=*/0, i, pass.inputs);
    Ask({false, i}, 1, pass.outputs.detach());
    if (training) passes[i] = std::move(pass);
  }
  for (const int i : micro_batches) mail_->Take({false, i}, group_.timeout());
  if (!training) return;
  for (const int i : micro_batches) Ask({true, i}, last, {});
  for (const int i : micro_batches) {
    const Mail::Letter gradient = mail_->Take({true, i}, group_.timeout());
    passes.extract(i).mapped().Backward(gradient.tensors.at(0));
  }
}

void RpcPipeline::Ask(const Task& task, int member, const at::Tensor& tensor) {
  Tensors arguments;
  if (tensor.defined()) arguments.push_back(tensor);
  mail_->Expect(task, group_.members()[static_cast<std::size_t>(member)]);
  calls_->Call(member, task.Text(), std::move(arguments),
               [this, task, member](absl::StatusOr<Tensors> answer) {
                 const int next = task.backward ? member - 1 : member + 1;
                 const bool through = task.backward ? next == 0 : next == group_.size();
                 if (!answer.ok()) {
                   mail_->Fail(absl::StrCat(
                       "ask rank ", group_.members()[static_cast<std::size_t>(member)], " for ",
                       task.Text(), " of the pipeline: ", answer.status().message()));
                 } else if (through) {
                   mail_->Put(task, {*std::move(answer), nullptr});
                 } else if (answer->size() == 1) {
                   Ask(task, next, answer->front());
                 } else {
                   mail_->Fail(absl::StrCat("rank ", member, " of the pipeline has answered ",
                                            task.Text(), " with no tensor"));
                 }
               });
}

void RpcPipeline::Serve(const PipelineStep& step, bool training) {
  const std::vector<int> micro_batches = MicroBatchesOf(step);
  const bool last = group_.rank() + 1 == group_.size();
  const std::string master = absl::StrCat("the master, rank ", group_.members().front());
  std::map<int, Pass> passes;
  // Every failure is also reported to the master.
  const auto carry_out = [&](const Task& task, const auto& work) {
    const FlightTicket waits = calls_->AwaitCall(0, task.Text());
    Mail::Letter letter = mail_->Take(task, group_.timeout(), master);
    calls_->Came(waits);
    try {
      letter.answer(work(letter.tensors));
    } catch (const std::exception& error) {
      letter.answer(absl::InternalError(error.what()));
      throw;
    }
  };
  for (const int i : micro_batches) {
    carry_out({false, i}, [&](const Tensors& arguments) {
      Pass pass = {.inputs = arguments.at(0)};
      if (training && pass.inputs.is_floating_point()) pass.inputs.requires_grad_();
      pass.outputs = step.forward(/*chunk=*/0, i, pass.inputs);
      if (last) pass.outputs = step.loss(i, pass.outputs);
      Tensors answer;
      if (!last) answer.push_back(pass.outputs.detach());
      if (training) passes[i] = std::move(pass);
      return answer;
    });
  }
  if (!training) return;
  for (const int i : micro_batches) {
    carry_out({true, i}, [&](const Tensors& arguments) {
      const Pass pass = std::move(passes.extract(i).mapped());
      pass.Backward(last ? at::ones_like(pass.outputs) : arguments.at(0));
      return Tensors{pass.GradientOfInputs()};
    });
  }
}

}  // namespace muster::trainer
