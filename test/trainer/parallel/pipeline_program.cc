// One rank of pipeline_test: trains a model in a pipeline, and in each rank the same model as a
// whole. Exits with 0 if they agree; prints differences to stderr.
//
// usage: pipeline_program gloo|shm SECONDS MODE SCHEDULE CHUNKS [MODEL]
//        MODE is train, change or forever; SECONDS is the timeout
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <torch/utils.h>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "trainer/comm/world.h"
#include "trainer/models/autocast.h"
#include "trainer/models/gpt.h"
#include "trainer/models/image_models.h"
#include "trainer/models/model.h"
#include "trainer/parallel/autograd_graph.h"
#include "trainer/parallel/mesh_links.h"
#include "trainer/parallel/pipeline_engine.h"
#include "trainer/parallel/rpc_pipeline.h"
#include "trainer/pipeline/schedules.h"
#include "trainer/pipeline/simulation.h"
#include "trainer/runtime/process_setup.h"
#include "trainer/worker/launcher_link.h"

namespace muster::trainer {
namespace {

constexpr int kMicroBatches = 8;
constexpr int kSteps = 8;
constexpr double kRate = 0.1;

int failures = 0;

void Expect(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", what.c_str());
  ++failures;
}

double Difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

std::optional<at::ScalarType> AutocastFor(const std::string& name) {
  return name == "mlp-bf16" ? std::optional(at::kBFloat16) : std::nullopt;
}

// "gpt", "gpt-tied", "mlp", "mlp-bf16" (float32 with autocast) or "cnn", whose activations are
// images with their channels innermost. Of "gpt-recomputed" activations are computed again when
// there is a pipeline, and never as a whole.
std::unique_ptr<Model> Made(const std::string& name, bool whole) {
  const DataShape text = {.kind = DataShape::Kind::kText, .classes = 23, .context = 6};
  const DataShape images = {.channels = 1, .height = 4, .width = 4, .classes = 5};
  const bool gpt = absl::StartsWith(name, "gpt");
  const ModelRecipe recipe =
      gpt ? GptRecipe({.layers = 6, .heads = 2, .width = 8, .tie_weights = name == "gpt-tied"})
      : name == "cnn" ? CnnRecipe()
                      : MlpRecipe("mlp", {12, 10, 8, 7});
  const ModelOptions options = {.channels_last = true,
                                .recompute = name == "gpt-recomputed" && !whole};
  std::unique_ptr<Model> model = MakeModel(recipe, gpt ? text : images, options).value();
  model->MoveTo(at::kCPU, AutocastFor(name) ? at::kFloat : at::kDouble);
  return model;
}

// Samples of what a model learns from.
struct Samples {
  at::Tensor inputs;
  at::Tensor targets;
};

Samples SamplesFor(const std::string& name, std::int64_t count, int step) {
  torch::manual_seed(1000 + step);
  if (!absl::StartsWith(name, "gpt")) {
    return {at::randn({count, 1, 4, 4}, AutocastFor(name) ? at::kFloat : at::kDouble),
            at::randint(5, {count}, at::kLong)};
  }
  return {at::randint(23, {count, 6}, at::kLong), at::randint(23, {count, 6}, at::kLong)};
}

// The sum over predictions.
at::Tensor SumOfLosses(const at::Tensor& scores, const at::Tensor& targets) {
  return at::cross_entropy_loss(scores.reshape({-1, scores.size(-1)}).to(at::kDouble),
                                targets.reshape({-1}), {}, at::Reduction::Sum);
}

void Descend(const std::vector<NamedTensor>& parameters) {
  const at::NoGradGuard no_grad;
  for (const NamedTensor& parameter : parameters) {
    at::Tensor tensor = parameter.tensor;
    if (tensor.grad().defined()) tensor.sub_(tensor.grad(), kRate);
    tensor.mutable_grad().reset();
  }
}

// A model in a pipeline.
class Pipelined {
 public:
  Pipelined(World& world, const std::string& driver, int chunks, const std::string& model)
      : group_(world.all()),
        name_(model),
        calls_(driver == "rpc"),
        model_(Made(model, /*whole=*/false)),
        shape_({group_.size(), chunks, kMicroBatches}) {
    if (calls_) {
      driver_ = std::make_unique<RpcPipeline>(group_);
    } else {
      driver_ = std::make_unique<PipelineEngine>(group_, MakeSchedule(driver, shape_).value());
    }
    const Samples one = SamplesFor(model, 1, 0);
    const std::vector<double> costs = StageCosts(*model_, one.inputs);
    const std::vector<StageRange> parts =
        RangesOf(CutEvenly(costs, shape_.parts()).value(), costs.size());
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const auto part = static_cast<std::size_t>(shape_.PartOf(group_.rank(), chunk));
      ranges_.push_back(parts[part]);
      for (const NamedTensor& own : model_->ParametersOf(ranges_.back())) mine_.push_back(own);
    }
    for (const SharedParameters& shared : FindShared(*model_, shape_, parts)) {
      if (!absl::c_linear_search(shared.ranks, group_.rank())) continue;
      pair_ = world.MakeGroup("shared", shared.ranks).value();
      for (const NamedTensor& own : mine_) {
        if (absl::c_linear_search(shared.names, own.name)) shared_.push_back(own);
      }
    }
  }

  // `count` samples; this rank's sum of losses.
  double Run(const Samples& samples, int step, bool training) {
    const std::int64_t count = samples.inputs.size(0);
    // Evaluations may have any number of micro-batches.
    const int parts = training ? kMicroBatches : 37;
    const auto begin = [&](int i) { return count * i / parts; };
    const auto rows = [&](const at::Tensor& tensor, int i) {
      return tensor.narrow(0, begin(i), begin(i + 1) - begin(i));
    };
    double sum = 0;
    PipelineStep work;
    for (int i = 0; i < parts; ++i) {
      work.input_sizes.push_back(rows(samples.inputs, i).sizes().vec());
    }
    work.inputs = [&](int i) { return rows(samples.inputs, i); };
    work.forward = [&](int chunk, int i, const at::Tensor& x) {
      const Autocast autocast(AutocastFor(name_), /*cuda=*/false);
      const StageRange& range = ranges_[static_cast<std::size_t>(chunk)];
      at::Tensor y = model_->ForwardPart({.step = step, .micro_batch = i}, range, x);
      Expect(y.scalar_type() == AutocastFor(name_).value_or(at::kDouble), "the outputs' type");
      return y;
    };
    work.loss = [&](int i, const at::Tensor& scores) {
      const at::Tensor loss = SumOfLosses(scores, rows(samples.targets, i));
      sum += loss.item<double>();
      return loss.div(static_cast<double>(samples.targets.numel()));
    };
    training ? driver_->Train(work) : driver_->Evaluate(work);
    if (training && pair_) SumSharedGradients(shared_, *pair_);
    return sum;
  }

  // What this rank should send: a message for each micro-batch with samples, of its rows.
  std::int64_t ExpectedBytes(std::int64_t count, bool training) const {
    const PipelineShape one = {shape_.stages, shape_.chunks, 1};
    std::int64_t messages = 0;
    for (int chunk = 0; chunk < one.chunks && one.stages > 1; ++chunk) {
      const int part = one.PartOf(group_.rank(), chunk);
      messages += part + 1 < one.parts() ? 1 : 0;  // the outputs
      messages += training && part > 0 ? 1 : 0;    // the gradient of the inputs
    }
    // The other ranks' messages pass through the first.
    const int relayed = calls_ && group_.rank() == 0 ? one.stages - 2 : 0;
    messages += training ? 2 * relayed : relayed;
    return messages * count * 6 * 8 * 8;  // of gpt: T x width x float64
  }

  std::int64_t sent() const { return group_.traffic(Use::kActivations).formula_bytes; }
  const std::string& name() const { return name_; }
  const std::vector<NamedTensor>& mine() const { return mine_; }

 private:
  Group& group_;
  const std::string name_;
  const bool calls_;
  const std::unique_ptr<Model> model_;
  const PipelineShape shape_;
  std::unique_ptr<PipelineDriver> driver_;
  std::vector<StageRange> ranges_;  // of this rank's chunks
  std::vector<NamedTensor> mine_;
  std::unique_ptr<Group> pair_;  // of the ranks that share parameters, if this is one
  std::vector<NamedTensor> shared_;
};

// Eight steps. The third has fewer samples than micro-batches, the others numbers not divisible by
// eight.
void Train(Group& group, Pipelined& pipelined) {
  const std::unique_ptr<Model> whole = Made(pipelined.name(), /*whole=*/true);
  const auto in_whole = [&](const std::string& name) {
    for (const NamedTensor& one : whole->Parameters()) {
      if (one.name == name) return one.tensor;
    }
    return at::Tensor();
  };
  // bfloat16 has 8 bits, and gradients of micro-batches are rounded before they are added up.
  const double tolerance = AutocastFor(pipelined.name()) ? 1e-2 : 1e-12;
  for (int step = 0; step < kSteps; ++step) {
    const std::int64_t count = step == 2 ? 5 : step == 7 ? 19 : 21;
    const Samples samples = SamplesFor(pipelined.name(), count, step);
    const std::int64_t before = pipelined.sent();
    const double sum = group.Sum({pipelined.Run(samples, step, /*training=*/true)})[0];
    if (absl::StartsWith(pipelined.name(), "gpt")) {
      Expect(pipelined.sent() - before == pipelined.ExpectedBytes(count, true),
             "a step sends what the formula says");
    }
    at::Tensor scores;
    {
      const Autocast autocast(AutocastFor(pipelined.name()), /*cuda=*/false);
      scores = whole->Forward(samples.inputs);
    }
    const at::Tensor loss = SumOfLosses(scores, samples.targets);
    Expect(std::abs(sum - loss.item<double>()) < 100 * tolerance,
           "the loss is that of one process");
    loss.div(static_cast<double>(samples.targets.numel())).backward();
    for (const NamedTensor& one : pipelined.mine()) {
      Expect(one.tensor.grad().defined() &&
                 Difference(one.tensor.grad(), in_whole(one.name).grad()) < tolerance,
             absl::StrCat("step ", step, ": the gradient of ", one.name));
    }
    Descend(pipelined.mine());
    Descend(whole->Parameters());
  }
  for (const NamedTensor& one : pipelined.mine()) {
    Expect(Difference(one.tensor, in_whole(one.name)) < tolerance,
           "the weights of " + one.name + " after all steps");
  }
  const Samples tests = SamplesFor(pipelined.name(), 59, 99);
  const std::int64_t before = pipelined.sent();
  const double sum = group.Sum({pipelined.Run(tests, 0, /*training=*/false)})[0];
  if (absl::StartsWith(pipelined.name(), "gpt")) {
    Expect(pipelined.sent() - before == pipelined.ExpectedBytes(59, false),
           "an evaluation sends what the formula says");
  }
  const at::NoGradGuard no_grad;
  const Autocast autocast(AutocastFor(pipelined.name()), /*cuda=*/false);
  Expect(std::abs(sum - SumOfLosses(whole->Forward(tests.inputs), tests.targets).item<double>()) <
             100 * tolerance,
         "the test loss is that of one process");
}

// Until another rank is lost. Exits the process: c10d's destructors wait for peers.
[[noreturn]] void TrainForever(Group& group, Pipelined& pipelined) {
  try {
    for (int step = 0;; ++step) {
      pipelined.Run(SamplesFor(pipelined.name(), 21, step), step, /*training=*/true);
      if (step != 2 || group.rank() != 0) continue;
      std::printf("training\n");
      std::fflush(stdout);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lost: %s\n", error.what());
    std::fflush(stderr);
  }
  _exit(3);
}

// The first part returns another number of columns than in the previous step, for the same inputs.
// Exits the process: c10d's destructors wait for peers.
[[noreturn]] void ChangeSizes(Group& group) {
  PipelineEngine engine(group, MakeSchedule("1f1b", {group.size(), 1, 2}).value());
  PipelineStep step;
  step.input_sizes = {{2, 3}, {2, 3}};
  step.inputs = [](int /*micro_batch*/) { return at::ones({2, 3}); };
  std::int64_t columns = 3;
  step.forward = [&](int /*chunk*/, int /*micro_batch*/, const at::Tensor& x) {
    return x.narrow(1, 0, columns) * 2;
  };
  step.loss = [](int /*micro_batch*/, const at::Tensor& y) { return y.sum(); };
  try {
    engine.Train(step);
    columns = 2;
    engine.Train(step);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lost: %s\n", error.what());
    std::fflush(stderr);
  }
  _exit(3);
}

// The last part throws in the third step. Exits the process: c10d's destructors wait for peers.
[[noreturn]] void ThrowInAPart(Group& group) {
  RpcPipeline pipeline(group);
  int steps = 0;
  PipelineStep step;
  step.input_sizes = {{2, 3}, {2, 3}};
  step.inputs = [](int /*micro_batch*/) { return at::ones({2, 3}); };
  step.forward = [&](int /*chunk*/, int /*micro_batch*/, const at::Tensor& x) {
    if (group.rank() + 1 == group.size() && steps == 2) throw std::runtime_error("no more of it");
    return x * 2;
  };
  step.loss = [](int /*micro_batch*/, const at::Tensor& y) { return y.sum(); };
  try {
    for (; steps < 4; ++steps) pipeline.Train(step);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lost: %s\n", error.what());
    std::fflush(stderr);
    // The failed rank's message may still be in flight.
    if (group.rank() + 1 == group.size()) group.Sum({0});
  }
  if (group.rank() == 0) group.Sum({0});
  _exit(3);
}

int Main(int argc, char** argv) {
  SetUpProcess();
  const Environment env = ReadEnvironment(LookupInProcess).value();
  auto joined = World::Join(env, std::string(argv[1]) == "shm" ? Comm::kShm : Comm::kGloo,
                            std::chrono::seconds(std::atoi(argv[2])));
  if (!joined.ok()) {
    std::fprintf(stderr, "%s\n", std::string(joined.status().message()).c_str());
    return 1;
  }
  Group& group = (*joined)->all();
  group.PrepareMessages();
  const std::string mode = argv[3];
  if (mode == "change") ChangeSizes(group);
  if (mode == "throw") ThrowInAPart(group);
  Pipelined pipelined(**joined, argv[4], std::atoi(argv[5]), argc > 6 ? argv[6] : "gpt");
  if (mode == "train") Train(group, pipelined);
  if (mode == "forever") TrainForever(group, pipelined);
  group.Barrier();
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::trainer

int main(int argc, char** argv) {
  return argc < 6 ? 2 : muster::trainer::Main(argc, argv);
}
