#include "trainer/app/trainer.h"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "trainer/core/beat.h"
#include "trainer/core/one_line.h"
#include "trainer/data/sampler.h"
#include "trainer/io/checkpoint.h"
#include "trainer/parallel/ddp.h"

namespace muster::trainer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kTestBatch = 500;
// How often the ranks add up their losses for the progress report. Each time costs as much as a
// small step.
constexpr std::int64_t kReportsPerEpoch = 20;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Classifier MakeModel(const Options& options, const at::Device& device) {
  Classifier model(options.model, options.seed);
  model.MoveTo(device, options.dtype);
  return model;
}

torch::optim::SGD MakeOptimizer(const Options& options, const Classifier& model) {
  std::vector<at::Tensor> parameters;
  for (const NamedTensor& parameter : model.Parameters()) parameters.push_back(parameter.tensor);
  return torch::optim::SGD(
      parameters, torch::optim::SGDOptions(options.learning_rate).momentum(options.momentum));
}

// Losses added up over images: of this rank, or of all.
struct LossSum {
  double loss = 0;
  double images = 0;

  double mean() const { return images > 0 ? loss / images : 0; }
  LossSum& operator+=(const LossSum& other) {
    loss += other.loss;
    images += other.images;
    return *this;
  }
};

LossSum OverRanks(const LossSum& mine, ProcessGroup& group) {
  const std::vector<double> sums = group.Sum({mine.loss, mine.images});
  return {sums[0], sums[1]};
}

}  // namespace

struct Trainer::Parts {
  Parts(const Options& options, const Environment& env, TrainAndTest data, ProcessGroup& group,
        Progress& progress)
      : options(options),
        env(env),
        data(std::move(data)),
        group(group),
        progress(progress),
        beats(env.beat_socket, env.rank),
        model(MakeModel(options, group.device())),
        ddp(model.Parameters(), model.Buffers(), group),
        optimizer(MakeOptimizer(options, model)),
        sampler({.dataset_size = this->data.train.size(),
                 .rank = env.rank,
                 .world_size = env.world_size,
                 .seed = options.seed}) {}

  bool leads() const { return env.rank == 0; }

  LossSum TrainStep(const std::vector<std::int64_t>& indices, std::int64_t own, double mean_own);

  const Options options;
  const Environment env;
  const TrainAndTest data;
  ProcessGroup& group;
  Progress& progress;
  BeatSender beats;

  Classifier model;
  DistributedDataParallel ddp;
  torch::optim::SGD optimizer;
  DistributedSampler sampler;

  // Where the training stands.
  std::ofstream loss_log;  // open on rank 0 when it is asked for
  int epoch = 0;
  std::int64_t steps = 0;    // over all epochs
  LossSum epoch_loss;        // of the epoch so far, over all ranks
  double train_seconds = 0;  // over all epochs, without evaluation
  std::int64_t images = 0;   // over all ranks and epochs
};

// One step on this rank's images `indices`, of which the first `own` count; the ranks have
// `mean_own` of those on average. Returns the sum of their losses, before the step.
//
// The last batch of an epoch may be smaller, and ranks may have filled their part of it up with
// images that others have too. Those pass through the model and count for nothing: a rank's loss is
// the sum over its own images, divided by mean_own. So the mean of the ranks' gradients, which is
// what DDP computes, is the gradient of the mean loss over the whole batch. Without this the loss
// curve would depend on the number of ranks.
LossSum Trainer::Parts::TrainStep(const std::vector<std::int64_t>& indices, std::int64_t own,
                                  double mean_own) {
  const ImageSet::Batch batch = data.train.Gather(indices);
  const at::Tensor pixels = batch.images.to(group.device(), options.dtype);
  const at::Tensor labels = batch.labels.to(group.device());
  for (const NamedTensor& parameter : model.Parameters()) parameter.tensor.mutable_grad().reset();
  const at::Tensor scores = ddp.Forward([&] { return model.Forward(pixels); });
  const at::Tensor loss = torch::nn::functional::cross_entropy(
      scores.narrow(0, 0, own), labels.narrow(0, 0, own),
      torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum));
  loss.div(mean_own).backward();
  optimizer.step();
  return {loss.item<double>(), static_cast<double>(own)};
}

Trainer::Trainer(const Options& options, const Environment& env, TrainAndTest data,
                 ProcessGroup& group, Progress& progress)
    : parts_(std::make_unique<Parts>(options, env, std::move(data), group, progress)) {}

Trainer::~Trainer() = default;

absl::StatusOr<Summary> Trainer::Run() {
  Parts& p = *parts_;
  const Options& options = p.options;
  const auto limit_reached = [&] { return options.max_steps > 0 && p.steps >= options.max_steps; };
  if (p.leads() && !options.loss_log.empty()) p.loss_log.open(options.loss_log);

  std::optional<double> accuracy;
  try {
    while (p.epoch < options.epochs && !limit_reached()) {
      TrainEpoch(p.epoch);
      ++p.epoch;
      if (!options.evaluate) continue;
      accuracy = Evaluate();
      if (p.leads() && options.epochs > 1) {
        p.progress.Say(absl::StrFormat("epoch %d/%d: test accuracy %.2f %%", p.epoch,
                                       options.epochs, *accuracy * 100));
      }
    }
    if (p.leads()) {
      p.loss_log.close();  // which fails, and sets the stream's state, only if it was open
      if (!options.loss_log.empty() && !p.loss_log) {
        return absl::UnavailableError(absl::StrCat("write loss log ", options.loss_log));
      }
      const absl::Status saved = SaveStateDict(p.model.Parameters(), options.checkpoint);
      if (!saved.ok()) return saved;
    }
    // Nobody reports success before the checkpoint is there, and rank 0, which may serve the store,
    // leaves with the others.
    p.group.Barrier();
  } catch (const std::exception& error) {
    const std::string why = OneLine(error);
    // Gloo's words for a connection that ended; they name an address that means nothing to anybody.
    const bool lost = absl::StrContains(why, "by peer");
    return absl::UnavailableError(absl::StrCat("training stopped in epoch ", p.epoch + 1,
                                               " after step ", p.steps, ": ",
                                               lost ? "another rank is gone: " : "", why));
  }

  return Summary{
      .world_size = p.env.world_size,
      .backend = p.group.comm() == Comm::kNccl ? "nccl" : "gloo",
      .restart_count = p.env.restart_count,
      .epochs = p.epoch,
      .steps = p.steps,
      .batch_size = options.batch_size,
      .train_loss = p.epoch_loss.mean(),
      .test_accuracy = accuracy,
      .images_per_second = static_cast<double>(p.images) / p.train_seconds,
      .checkpoint = options.checkpoint,
  };
}

void Trainer::TrainEpoch(int epoch) {
  Parts& p = *parts_;
  const std::int64_t size = p.data.train.size();
  const std::int64_t batch = p.options.batch_size;
  const std::int64_t rank_batch = batch / p.env.world_size;
  const std::int64_t all_steps = (size + batch - 1) / batch;
  const std::int64_t steps =
      p.options.max_steps > 0 ? std::min(all_steps, p.options.max_steps - p.steps) : all_steps;
  const std::int64_t report_every = std::max<std::int64_t>(1, steps / kReportsPerEpoch);

  p.model.SetTraining(true);
  p.sampler.SetEpoch(epoch);
  p.epoch_loss = {};
  const std::vector<std::int64_t> indices = p.sampler.Indices();
  LossSum unreported;  // of this rank
  std::int64_t images = 0;
  const Clock::time_point start = Clock::now();

  for (std::int64_t step = 1; step <= steps; ++step) {
    const std::int64_t begin = (step - 1) * rank_batch;
    const std::int64_t end = std::min(begin + rank_batch, p.sampler.samples_per_rank());
    const std::int64_t own = p.sampler.OwnAmongFirst(end) - p.sampler.OwnAmongFirst(begin);
    const std::int64_t batch_images = std::min(batch, size - (step - 1) * batch);
    const LossSum step_loss = p.TrainStep({indices.begin() + begin, indices.begin() + end}, own,
                                          static_cast<double>(batch_images) / p.env.world_size);
    ++p.steps;
    p.beats.Send(p.steps);
    images += batch_images;
    unreported += step_loss;
    if (!p.options.loss_log.empty()) {
      const double mean = OverRanks(step_loss, p.group).mean();
      if (p.leads()) p.loss_log << absl::StrFormat("%d %.9g\n", p.steps, mean);
    }
    if (step % report_every == 0 || step == steps) {
      const LossSum reported = OverRanks(std::exchange(unreported, {}), p.group);
      p.epoch_loss += reported;
      if (p.leads()) {
        p.progress.Show({.epoch = epoch + 1,
                         .epochs = p.options.epochs,
                         .step = step,
                         .steps = steps,
                         .loss = reported.mean(),
                         .images_per_second = static_cast<double>(images) / SecondsSince(start)});
      }
    }
  }
  p.images += images;
  p.train_seconds += SecondsSince(start);
}

double Trainer::Evaluate() {
  Parts& p = *parts_;
  const torch::NoGradGuard no_grad;
  p.model.SetTraining(false);
  const std::int64_t size = p.data.test.size();
  double correct = 0;
  std::vector<std::int64_t> indices;
  for (std::int64_t i = p.env.rank; i < size; i += p.env.world_size) {
    indices.push_back(i);
    const bool last = i + p.env.world_size >= size;
    if (static_cast<std::int64_t>(indices.size()) < kTestBatch && !last) continue;
    const ImageSet::Batch batch = p.data.test.Gather(indices);
    indices.clear();
    const at::Tensor guess =
        p.model.Forward(batch.images.to(p.group.device(), p.options.dtype)).argmax(/*dim=*/1).cpu();
    correct += guess.eq(batch.labels).sum().item<double>();
    // No step, but progress.
    p.beats.Send(p.steps);
  }
  return p.group.Sum({correct})[0] / static_cast<double>(size);
}

}  // namespace muster::trainer
