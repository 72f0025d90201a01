// One rank of pipelines whose stages stand for those of a model: what a step keeps in memory, how
// long ranks wait, and what it costs to split a backward pass.
//
// usage: pipeline_load_program memory|bubble|split [shm]
//        memory exits with 0 if a step keeps what its schedule says, for up to 4 ranks; the others
//        print what they measure: bubble for the stages of all ranks, split of one rank alone
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "test/trainer/models/counting_allocator.h"
#include "trainer/comm/world.h"
#include "trainer/models/gpt.h"
#include "trainer/models/model.h"
#include "trainer/parallel/autograd_graph.h"
#include "trainer/parallel/pipeline_engine.h"
#include "trainer/pipeline/schedules.h"
#include "trainer/pipeline/simulation.h"
#include "trainer/worker/launcher_link.h"

namespace muster::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Clock = std::chrono::steady_clock;

int failures = 0;

Milliseconds Since(Clock::time_point start) {
  return Clock::now() - start;
}

// A step of `micro_batches` like `inputs` through `forward`.
PipelineStep StepOf(int micro_batches, const at::Tensor& inputs,
                    const std::function<at::Tensor(const at::Tensor&)>& forward) {
  PipelineStep step;
  step.input_sizes.assign(static_cast<std::size_t>(micro_batches), inputs.sizes().vec());
  step.inputs = [inputs](int /*micro_batch*/) { return inputs; };
  step.forward = [forward](int /*chunk*/, int /*micro_batch*/, const at::Tensor& x) {
    return forward(x);
  };
  step.loss = [](int /*micro_batch*/, const at::Tensor& y) { return y.sum(); };
  return step;
}

PipelineSchedule ScheduleOf(const std::string& name, int stages, int micro_batches) {
  const int chunks = name == "interleaved" ? 2 : 1;
  return MakeSchedule(name, {stages, chunks, micro_batches}).value();
}

// The peak memory of a step is that of the live micro-batches, however many there are in total: a
// pass through a chunk keeps ten activations, and a few more are in flight or being computed.
void Memory(Group& group) {
  constexpr std::int64_t kActivation = 1 << 18;  // bytes
  constexpr int kKept = 10;
  const at::Tensor inputs = at::randn({kActivation / 4}).requires_grad_();
  const auto chain = [](const at::Tensor& x) {
    at::Tensor y = at::tanh(x);
    for (int i = 1; i < kKept; ++i) y = at::tanh(y);
    return y;
  };
  CountTensors();
  for (const std::string& name : ScheduleNames()) {
    for (const int micro_batches : {8, 32}) {
      const PipelineSchedule schedule = ScheduleOf(name, group.size(), micro_batches);
      PipelineEngine engine(group, schedule);
      const PipelineStep step = StepOf(micro_batches, inputs, chain);
      // Without parameters a backward of weights needs nothing, and what is live is what 1F1B with
      // that many forwards ahead keeps.
      engine.Train(step);
      group.Barrier();
      const std::int64_t before = BytesOfTensors();
      RestartPeak();
      engine.Train(step);
      const std::int64_t most = (PeakOfTensors() - before) / kActivation;
      const int live = name == "zero-bubble"
                           ? std::min(micro_batches, group.size() - group.rank())
                           : TheoryOfLive(schedule.kind, schedule.shape, group.rank());
      const bool right = most >= (live - 1) * kKept && most <= live * kKept + live + 8;
      std::printf("%-12s %2d micro-batches, rank %d: %ld activations for %d live\n", name.c_str(),
                  micro_batches, group.rank(), most, live);
      if (right) continue;
      std::fprintf(stderr, "%s of %d micro-batches keeps %ld activations for %d live ones\n",
                   name.c_str(), micro_batches, most, live);
      ++failures;
    }
  }
}

// The identity, which takes a while forward and backward.
struct Sleeps : torch::autograd::Function<Sleeps> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, double forward_ms,
                            double backward_ms) {
    context->saved_data["backward"] = backward_ms;
    std::this_thread::sleep_for(Milliseconds(forward_ms));
    return x.clone();
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    std::this_thread::sleep_for(Milliseconds(context->saved_data["backward"].toDouble()));
    return {gradients[0], at::Tensor(), at::Tensor()};
  }
};

// Forward, backward of inputs and backward of weights of 8 ms each.
void Bubble(Group& group) {
  constexpr double kPass = 8;
  constexpr int kRounds = 6;
  const at::Tensor weight = at::ones({4, 4}).requires_grad_();
  const at::Tensor inputs = at::ones({4, 4}).requires_grad_();
  if (group.rank() == 0) {
    std::printf(
        "stages  m   schedule     measured  idle    theory   (stages that sleep 3 x 8 ms)\n");
  }
  for (const int micro_batches : {4, 8, 16}) {
    for (const std::string name : {"gpipe", "1f1b", "interleaved", "zero-bubble"}) {
      const PipelineSchedule schedule = ScheduleOf(name, group.size(), micro_batches);
      const double pass = kPass / schedule.shape.chunks;
      PipelineEngine engine(group, schedule);
      const PipelineStep step = StepOf(micro_batches, inputs, [&](const at::Tensor& x) {
        return Sleeps::apply(x, pass, pass) * Sleeps::apply(weight, 0.0, pass);
      });
      double best = 1e9;
      double busy = 0;  // of all ranks, in the best round
      for (int round = 0; round < kRounds; ++round) {
        group.Barrier();
        engine.Train(step);
        std::vector<double> each(static_cast<std::size_t>(group.size()) + 1, 0);
        each[static_cast<std::size_t>(group.rank())] = engine.times().step.count();
        each.back() = (engine.times().step - engine.times().waited).count();
        each = group.Sum(each);
        const double longest = *std::max_element(each.begin(), each.end() - 1);
        if (round == 0 || longest > best) continue;  // in the first one ranks exchange sizes
        best = longest;
        busy = each.back();
      }
      const double theory = TheoryOfBubble(schedule.kind, schedule.shape, {}).share.value_or(0);
      if (group.rank() != 0) continue;
      std::printf("%6d  %-3d %-12s %.3f     %.3f   %.3f\n", group.size(), micro_batches,
                  name.c_str(), 1 - micro_batches * 3 * kPass / best,
                  1 - busy / best / group.size(), theory);
      std::fflush(stdout);
    }
  }
}

// Best times of a GPT's blocks backward, in one, in halves, and as two independent passes.
void Split() {
  const DataShape text = {.kind = DataShape::Kind::kText, .classes = 32, .context = 128};
  const auto model = MakeModel(GptRecipe({.layers = 2, .heads = 4, .width = 256}), text).value();
  std::vector<at::Tensor> parameters;
  for (const NamedTensor& one : model->ParametersOf({1, 3})) parameters.push_back(one.tensor);
  const at::Tensor start = at::randn({8, 128, 256});
  const at::Tensor gradient = at::randn({8, 128, 256});
  std::vector<double> best(6, 1e9);
  const auto note = [&best](std::size_t which, Clock::time_point begin) {
    best[which] = std::min(best[which], Since(begin).count());
  };
  for (int round = 0; round < 15; ++round) {
    const auto forward = [&](const at::Tensor& x) { return model->ForwardPart({}, {1, 3}, x); };
    const auto fresh = [&] { return start.detach().requires_grad_(); };
    at::Tensor x = fresh();
    auto begin = Clock::now();
    at::Tensor y = forward(x);
    note(0, begin);
    begin = Clock::now();
    torch::autograd::backward({y}, {gradient});
    note(1, begin);

    x = fresh();
    y = forward(x);
    begin = Clock::now();
    SplitBackward halves = BackwardOfInputs(y, gradient, x);
    note(2, begin);
    begin = Clock::now();
    halves.weights();
    note(3, begin);

    x = fresh();
    y = forward(x);
    begin = Clock::now();
    torch::autograd::grad({y}, {x}, {gradient}, /*retain_graph=*/true);
    note(4, begin);
    begin = Clock::now();
    torch::autograd::grad({y}, parameters, {gradient});
    note(5, begin);
  }
  std::printf("two blocks of a GPT of width 256, 8 x 128 tokens, best of 15, ms:\n");
  std::printf("  forward %.1f, backward in one %.1f\n", best[0], best[1]);
  std::printf("  in halves: inputs %.1f, weights %.1f\n", best[2], best[3]);
  std::printf("  two passes of grad(): inputs %.1f, weights %.1f\n", best[4], best[5]);
}

int Main(const std::string& mode, bool shm) {
  at::set_num_threads(1);
  if (mode == "split") {
    Split();
    return 0;
  }
  const Environment env = ReadEnvironment(LookupInProcess).value();
  const auto world =
      World::Join(env, shm ? Comm::kShm : Comm::kGloo, std::chrono::seconds(60)).value();
  world->all().PrepareMessages();
  mode == "memory" ? Memory(world->all()) : Bubble(world->all());
  world->all().Barrier();
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::trainer

int main(int argc, char** argv) {
  return argc < 2 ? 2 : muster::trainer::Main(argv[1], argc > 2);
}
