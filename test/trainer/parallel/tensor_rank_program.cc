// One rank of tensor_parallel_test: trains a GPT whose layers are split over the ranks, and beside
// it the whole one, in float64. Exits with 0 if they agree; prints differences to stderr.
//
// usage: tensor_rank_program gloo|shm
#include <cstdio>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <torch/utils.h>

#include "absl/strings/match.h"

#include "trainer/comm/host/operation_log.h"
#include "trainer/comm/world.h"
#include "trainer/models/autocast.h"
#include "trainer/models/gpt.h"
#include "trainer/models/model.h"
#include "trainer/models/objective.h"
#include "trainer/optim/optimizer.h"
#include "trainer/parallel/mesh_links.h"
#include "trainer/worker/launcher_link.h"

namespace muster::trainer {
namespace {

constexpr int kSteps = 8;
constexpr double kTolerance = 1e-12;
constexpr std::int64_t kBatch = 3;
constexpr std::int64_t kContext = 8;
constexpr GptOptions kSizes = {.layers = 2, .heads = 4, .width = 32};

int failures = 0;

void Expect(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", what.c_str());
  ++failures;
}

double Difference(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() ? (a - b).abs().max().item<double>()
                                : std::numeric_limits<double>::infinity();
}

std::unique_ptr<Model> Gpt(std::int64_t vocabulary, bool tied, at::ScalarType type = at::kDouble) {
  GptOptions options = kSizes;
  options.tie_weights = tied;
  auto model = MakeModel(
      GptRecipe(options),
      {.kind = DataShape::Kind::kText, .classes = vocabulary, .context = kContext}, {.seed = 5});
  model.value()->MoveTo(at::kCPU, type);
  return *std::move(model);
}

std::unique_ptr<Optimizer> AdamW(const Model& model) {
  return MakeOptimizer({.kind = OptimizerKind::kAdamW, .weight_decay = 0.1}, model.Parameters())
      .value();
}

// The same bits on every rank.
bool SameEverywhere(const at::Tensor& tensor, Group& group) {
  const at::Tensor all = group.AllGather(tensor.contiguous().unsqueeze(0), Use::kOther);
  bool same = true;
  for (const at::Tensor& one : all.unbind(0)) same = same && one.equal(all[0]);
  return same;
}

// If each rank has a part of the sequence, it has a part of the gradients of whole parameters.
void SumOverSequence(const Model& split, const TensorLinks& links, Group& group) {
  if (!links.splits_sequence()) return;
  for (NamedTensor& parameter : split.Parameters()) {
    if (split.SplitOf(parameter.name) != TensorSplit::kWhole) continue;
    at::Tensor& gradient = parameter.tensor.mutable_grad();
    gradient = gradient.contiguous();
    group.AllReduce(gradient, Use::kOther);
  }
}

void ExpectGradients(const Model& whole, const Model& split, Group& group, const std::string& in) {
  const std::vector<NamedTensor> expected = whole.Parameters();
  const std::vector<NamedTensor> parts = split.Parameters();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string& name = parts[i].name;
    const at::Tensor& gradient = parts[i].tensor.grad();
    const double scale = expected[i].tensor.grad().abs().max().item<double>();
    Expect(scale > 0 &&
               Difference(split.Whole(name, gradient), expected[i].tensor.grad()) < kTolerance,
           in + ": the gradient of " + name);
    Expect(split.SplitOf(name) != TensorSplit::kWhole || SameEverywhere(gradient, group),
           in + ": the gradient of " + name + " is the same on all ranks");
  }
}

void ClearGradients(const Model& model) {
  for (NamedTensor& parameter : model.Parameters()) parameter.tensor.mutable_grad().reset();
}

// What a recipe may want: a loss that needs all scores of a row.
at::Tensor SumOfSquares(const at::Tensor& scores, const at::Tensor& targets) {
  const at::Tensor of_target = scores.gather(-1, targets.unsqueeze(-1));
  return (scores.softmax(-1) * (scores - of_target).square()).sum();
}

at::Tensor Range(const at::Tensor& scores, const at::Tensor&) {
  return (scores.amax(-1) - scores.amin(-1)).sum();
}

// With the same weights, one pass with a recipe's own loss and metric.
void OwnObjective(Model& whole, Model& split, const TensorLinks& links, Group& group,
                  const at::Tensor& x, const at::Tensor& y, const std::string& in) {
  const Objective own = {.loss = SumOfSquares, .metrics = {{"range", Range, /*is_share=*/false}}};
  const Objective of_parts = split.ObjectiveOf(own);
  const at::Tensor expected = own.loss(whole.Forward(x), y);
  const at::Tensor loss = of_parts.loss(split.Forward(x), y);
  Expect(Difference(loss, expected) < 1e3 * kTolerance, in + ": a loss of one's own");
  expected.backward();
  loss.backward();
  SumOverSequence(split, links, group);
  ExpectGradients(whole, split, group, in + ", a loss of one's own");
  const at::NoGradGuard no_grad;
  Expect(Difference(of_parts.metrics[0].sum(split.Forward(x), y),
                    own.metrics[0].sum(whole.Forward(x), y)) < kTolerance,
         in + ": a metric of one's own");
  ClearGradients(whole);
  ClearGradients(split);
}

// Bytes that a rank sends in each pass of a batch. With the n ranks' activations of a = B x T x
// width x 8, an all-reduce sends 2(n-1)/n a (RingBytes). Each block does two of them forward, after
// its attention and its MLP, and two backward, before them: Shoeybi et al., "Megatron-LM", 2019,
// figure 4. The embeddings do one forward, and the head one backward; and the cross entropy sends 3
// numbers a token forward.
//
// If the sequence is split, each all-reduce is divided into its two halves, one where the layers
// begin and one where they end, in both passes; and inputs of which a rank has kept only its part
// are gathered once more in the backward pass: Korthikanti et al., "Reducing Activation
// Recomputation in Large Transformer Models", 2022.
struct SplitBytes {
  std::int64_t forward = 0;
  std::int64_t backward = 0;
};
SplitBytes BytesOfSplit(int ranks, bool splits_sequence) {
  constexpr std::int64_t kTokens = kBatch * kContext;
  const std::int64_t loss = RingBytes(ranks, 3 * kTokens * 8);
  const auto halves = [ranks](std::int64_t count) {  // of an all-reduce
    return RingBytes(ranks, count * kTokens * kSizes.width * 8) / 2;
  };
  const std::int64_t layers = kSizes.layers;
  if (splits_sequence) return {halves(4 * layers + 2) + loss, halves(6 * layers + 3)};
  return {halves(4 * layers + 2) + loss, halves(4 * layers + 2)};
}

void Training(Group& group, const std::shared_ptr<TensorLinks>& links, std::int64_t vocabulary,
              bool tied) {
  const std::string in = "vocabulary of " + std::to_string(vocabulary) + (tied ? ", tied" : "") +
                         (links->splits_sequence() ? ", parts of the sequence" : "");
  const std::unique_ptr<Model> whole = Gpt(vocabulary, tied);
  const std::unique_ptr<Model> split = Gpt(vocabulary, tied);
  Expect(split->tensor_divides() == kSizes.heads, in + ": heads are what ranks share");
  const absl::Status status = split->SplitOver(links);
  Expect(status.ok(), in + ": " + std::string(status.message()));
  if (!status.ok()) return;

  // No rank has more than its share of split parameters.
  const std::vector<NamedTensor> parameters = whole->Parameters();
  const std::vector<NamedTensor> parts = split->Parameters();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string& name = parts[i].name;
    const bool vector = parts[i].tensor.dim() == 1;
    const bool stays = absl::StrContains(name, "ln_") || absl::StrContains(name, "wpe") ||
                       (vector && absl::StrContains(name, "c_proj"));
    Expect((split->SplitOf(name) == TensorSplit::kWhole) == stays, in + ": " + name + " is split");
    const std::int64_t rest = parts[i].tensor.numel() * group.size() - parameters[i].tensor.numel();
    Expect(stays || (rest >= 0 && rest < group.size() * kSizes.width), in + ": a part of " + name);
    Expect(split->Part(name, parameters[i].tensor).equal(parts[i].tensor), in + ": cut " + name);
  }

  const Objective objective;
  const Objective of_parts = split->ObjectiveOf(objective);
  const std::unique_ptr<Optimizer> whole_optimizer = AdamW(*whole);
  const std::unique_ptr<Optimizer> split_optimizer = AdamW(*split);
  const SplitBytes bytes = BytesOfSplit(group.size(), links->splits_sequence());
  for (int step = 0; step < kSteps; ++step) {
    torch::manual_seed(step);  // the same batch on every rank
    const at::Tensor x = at::randint(vocabulary, {kBatch, kContext}, at::kLong);
    const at::Tensor y = at::randint(vocabulary, {kBatch, kContext}, at::kLong);
    const at::Tensor expected = objective.loss(whole->Forward(x), y);
    expected.div(y.numel()).backward();

    const Traffic before = group.traffic(Use::kActivations);
    const at::Tensor loss = of_parts.loss(split->Forward(x), y);
    const Traffic forward = group.traffic(Use::kActivations);
    loss.div(y.numel()).backward();
    const Traffic backward = group.traffic(Use::kActivations);
    Expect(forward.Since(before).formula_bytes == bytes.forward, in + ": bytes sent forward");
    Expect(backward.Since(forward).formula_bytes == bytes.backward, in + ": bytes sent backward");

    Expect(Difference(loss, expected) < y.numel() * kTolerance, in + ": the loss");
    Expect(SameEverywhere(loss.detach(), group), in + ": the loss is the same on all ranks");
    SumOverSequence(*split, *links, group);
    ExpectGradients(*whole, *split, group, in);
    whole_optimizer->Step(0.01);
    split_optimizer->Step(0.01);
    ClearGradients(*whole);
    ClearGradients(*split);

    const at::NoGradGuard no_grad;
    const at::Tensor scores = whole->Forward(x);
    const at::Tensor right = objective.metrics[0].sum(scores, scores.argmax(-1));
    Expect(right.item<std::int64_t>() == y.numel() &&
               right.equal(of_parts.metrics[0].sum(split->Forward(x), scores.argmax(-1))),
           in + ": all predictions are the same");
    Expect(objective.metrics[0].sum(scores, y).equal(of_parts.metrics[0].sum(split->Forward(x), y)),
           in + ": the accuracy");
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string& name = parts[i].name;
    Expect(Difference(split->Whole(name, parts[i].tensor), parameters[i].tensor) < kTolerance,
           in + ": the weights of " + name + " at the end");
  }
  const at::Tensor x = at::randint(vocabulary, {kBatch, kContext}, at::kLong);
  OwnObjective(*whole, *split, *links, group, x, x.flip(1), in);

  bool refused = false;
  try {
    split->Forward(at::full({1, 1}, vocabulary, at::kLong));
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  Expect(refused, in + ": a token that there is not, though a row may stand for it");
}

// With autocast, layers compute in bfloat16; everything has the types that it has in one process.
void HalfPrecision(const std::shared_ptr<TensorLinks>& links, Group& group) {
  const std::unique_ptr<Model> whole = Gpt(50, /*tied=*/true, at::kFloat);
  const std::unique_ptr<Model> split = Gpt(50, /*tied=*/true, at::kFloat);
  const bool done = split->SplitOver(links).ok();
  torch::manual_seed(3);
  const at::Tensor x = at::randint(50, {kBatch, kContext}, at::kLong);
  const auto first = [&](Model& model) {  // the stages before the head
    return model.ForwardPart({}, {0, model.stages().size() - 1}, x);
  };
  const auto loss_of = [&](Model& model) {
    const Autocast autocast(at::kBFloat16, /*cuda=*/false);
    Expect(first(model).scalar_type() == first(*whole).scalar_type(), "bfloat16: the blocks' type");
    const at::Tensor scores = model.Forward(x);
    Expect(scores.scalar_type() == at::kBFloat16, "bfloat16: the scores' type");
    return model.ObjectiveOf({}).loss(scores, x);
  };
  const at::Tensor expected = loss_of(*whole);
  const at::Tensor loss = loss_of(*split);
  Expect(done && loss.scalar_type() == at::kFloat &&
             Difference(loss, expected) < 0.01 * expected.item<double>(),
         "bfloat16: the loss");
  expected.backward();
  loss.backward();
  SumOverSequence(*split, *links, group);
  for (const NamedTensor& parameter : whole->Parameters()) {
    const at::Tensor& gradient = parameter.tensor.grad();
    for (const NamedTensor& part : split->Parameters()) {
      if (part.name != parameter.name) continue;
      const at::Tensor own = split->Whole(part.name, part.tensor.grad());
      Expect((own - gradient).norm().item<double>() < 0.05 * gradient.norm().item<double>(),
             "bfloat16: the gradient of " + part.name);
    }
  }
}

// The parts of scores as the head returns them.
at::Tensor PartOf(const at::Tensor& scores, const TensorLinks& links) {
  const std::int64_t missing = (links.parts() - scores.size(-1) % links.parts()) % links.parts();
  std::vector<std::int64_t> sizes = scores.sizes().vec();
  sizes.back() = missing;
  const double lowest = -std::numeric_limits<double>::infinity();
  return at::cat({scores, at::full(sizes, lowest, scores.options())}, -1)
      .chunk(links.parts(), -1)[static_cast<std::size_t>(links.part())];
}

// Functions of scores in corners that training does not meet.
void Corners(TensorLinks& links) {
  torch::manual_seed(9);
  for (const std::int64_t classes : {1, 3, 10, 257}) {
    const std::string in = std::to_string(classes) + " classes";
    // Three values, so that most rows have several highest ones.
    at::Tensor scores = at::randint(3, {5, 40, classes}, at::kDouble);
    const at::Tensor targets = at::randint(classes, {5, 40}, at::kLong);
    for (const bool nan : {false, true}) {
      if (nan) scores.masked_fill_(at::rand(scores.sizes()) < 0.2 / classes, std::nan(""));
      const at::Tensor first = scores.argmax(-1);
      const at::Tensor right = SplitCountCorrect(PartOf(scores, links), first, links);
      Expect(right.item<std::int64_t>() == 200,
             in + ": the first of the highest scores is the prediction");
      Expect(SplitCountCorrect(PartOf(scores, links), targets, links)
                 .equal(CountCorrect(scores, targets)),
             in + ": right predictions");
    }
    for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
      // Large enough that exponentials overflow unless the maximum is subtracted.
      const at::Tensor large = (at::randn({5, 40, classes}) * 500).to(type).requires_grad_();
      at::Tensor some = targets.clone();
      some[0].fill_(-100);  // ignored by LibTorch
      const at::Tensor expected = CrossEntropySum(large, some);
      const at::Tensor sum = SplitCrossEntropySum(PartOf(large, links), some, classes, links);
      Expect(sum.scalar_type() == expected.scalar_type(), in + ": the loss's type");
      const double scale = std::max(1.0, expected.item<double>());
      Expect(Difference(sum, expected) <= scale * (type == at::kDouble ? kTolerance : 1e-5),
             in + ": a large loss");
      expected.backward();
      const at::Tensor gradient = PartOf(large.grad(), links).clone();
      large.mutable_grad().reset();
      sum.backward();
      const at::Tensor own = PartOf(large.grad(), links);
      const at::Tensor real = gradient.isfinite();  // not where there are no classes
      Expect(
          Difference(own.where(real, at::zeros_like(own)),
                     gradient.where(real, at::zeros_like(own))) <= (type == at::kDouble ? kTolerance
                                                                    : type == at::kFloat ? 1e-6
                                                                                         : 1e-2),
          in + ": the gradient of a large loss");
    }
    const at::Tensor none = at::zeros({0, 40, classes}, at::kDouble).requires_grad_();
    const at::Tensor empty =
        SplitCrossEntropySum(PartOf(none, links), targets.narrow(0, 0, 0), classes, links);
    Expect(empty.item<double>() == 0 && empty.requires_grad(), in + ": no samples");
    const at::Tensor none_right =
        SplitCountCorrect(PartOf(none, links), targets.narrow(0, 0, 0), links);
    Expect(none_right.item<std::int64_t>() == 0, in + ": no samples, none right");
    bool refused = false;
    try {
      SplitCrossEntropySum(PartOf(scores, links), targets + classes, classes, links);
    } catch (const std::invalid_argument&) {
      refused = true;
    }
    Expect(refused, in + ": a target that is no class");
  }
}

// Values and gradients of what the layers exchange, by hand: rank r has r + 1.
void Exchanges(TensorLinks& links) {
  const int n = links.parts();
  const int r = links.part();
  const double sum = n * (n + 1) / 2.0;
  const auto filled = [](double value) { return at::full({2, 3}, value, at::kDouble); };
  const at::Tensor x = filled(r + 1).requires_grad_();
  const at::Tensor same = at::arange(6, at::kDouble).view({2, 3});

  const at::Tensor reduced = links.Reduce(x);
  reduced.backward(same);
  Expect(reduced.equal(filled(sum)) && x.grad().equal(same),
         "Reduce: a sum, the gradient as it is");
  Expect(x.equal(filled(r + 1)), "Reduce leaves what it is given alone");

  // An addition gives both sides the same tensor as their gradient.
  const at::Tensor y = at::ones({2, 3}, at::kDouble).requires_grad_();
  const at::Tensor z = at::ones({2, 3}, at::kDouble).requires_grad_();
  const at::Tensor gradient = filled(r + 1);
  (links.Copy(y) + links.Copy(z)).backward(gradient);
  Expect(y.grad().equal(filled(sum)) && z.grad().equal(filled(sum)), "Copy: a sum of gradients");
  Expect(gradient.equal(filled(r + 1)), "Copy leaves gradients alone");

  for (const std::int64_t dimension : {0, 1, -1}) {
    const at::Tensor part = filled(r + 1).requires_grad_();
    const at::Tensor all = links.Gather(part, dimension);
    std::vector<at::Tensor> expected;
    for (int i = 0; i < n; ++i) expected.push_back(filled(i + 1));
    Expect(all.equal(at::cat(expected, dimension)), "Gather, in the order of ranks");
    const at::Tensor slope = at::arange(6 * n, at::kDouble).view(all.sizes());
    all.backward(slope);
    Expect(part.grad().equal(slope.chunk(n, dimension)[static_cast<std::size_t>(r)]),
           "Gather: a part's own gradient");
  }
  at::Tensor most = filled(r == n / 2 ? 7 : -r);
  links.Max(most);
  at::Tensor total = filled(r + 1);
  links.Sum(total);
  Expect(most.equal(filled(7)) && total.equal(filled(sum)), "maximum and sum");
}

int Main(const std::string& comm) {
  const Environment env = ReadEnvironment(LookupInProcess).value();
  const auto world =
      World::Join(env, comm == "shm" ? Comm::kShm : Comm::kGloo, std::chrono::seconds(60)).value();
  Group& group = world->all();
  const auto links = std::make_shared<TensorGroupLinks>(group);
  const auto of_sequences = std::make_shared<TensorGroupLinks>(group, /*splits_sequence=*/true);
  if (group.size() == 3) {
    const std::unique_ptr<Model> model = Gpt(50, false);
    const absl::Status status = model->SplitOver(links);
    std::printf("%s\n", std::string(status.message()).c_str());
    Expect(!status.ok() && model->SplitOf("transformer.wte.weight") == TensorSplit::kWhole &&
               model->Parameters()[0].tensor.size(0) == 50,
           "a model that cannot be split stays as it is");
  } else {
    for (const std::int64_t vocabulary : {50, 257}) {
      for (const bool tied : {false, true}) {
        Training(group, links, vocabulary, tied);
        Training(group, of_sequences, vocabulary, tied);
      }
    }
    HalfPrecision(links, group);
    HalfPrecision(of_sequences, group);
  }
  Corners(*links);
  Exchanges(*links);
  group.Barrier();
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::trainer

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  return muster::trainer::Main(argv[1]);
}
