#include "trainer/app/strategies/mesh_plan.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/models/autocast.h"
#include "trainer/parallel/autograd_graph.h"
#include "trainer/pipeline/schedules.h"

namespace muster::trainer {
namespace {

constexpr int kMicroBatchesPerRank = 4;
constexpr int kUsualChunks = 2;

// What each stage costs, or where that cannot be found out without samples, its parameters.
std::vector<double> CostsOf(const Options& options, Model& model) {
  const at::Tensor inputs = SomeInputs(options, model);
  if (inputs.defined()) return StageCosts(model, inputs);
  std::vector<double> costs;
  for (std::size_t i = 0; i < model.stages().size(); ++i) {
    costs.push_back(0);
    for (const NamedTensor& parameter : model.ParametersOf({i, i + 1})) {
      costs.back() += static_cast<double>(parameter.tensor.numel());
    }
  }
  return costs;
}

// OK when each parameter belongs to a stage.
absl::Status CheckUsers(const Model& model) {
  for (const NamedTensor& parameter : model.Parameters()) {
    const auto uses = [&](const Stage& stage) { return UsesTensor(stage, parameter.name); };
    if (std::any_of(model.stages().begin(), model.stages().end(), uses)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("cut the model for --mesh: no stage says that it uses the parameter ",
                     parameter.name, "; name its module in that stage's Stage::uses"));
  }
  return absl::OkStatus();
}

// Where a model is cut for a pipeline: the stages of each part, in their order. The same on all
// ranks.
absl::StatusOr<std::vector<StageRange>> CutModel(const Options& options, Model& model,
                                                 const Mesh& mesh, int chunks) {
  const std::size_t count = static_cast<std::size_t>(mesh.pipeline * chunks);
  const std::vector<std::string>& cuts = options.parallel.mesh.cuts;
  const std::size_t stages = model.stages().size();
  if (count > stages && chunks > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--mesh ", mesh.Text(), ": ", chunks, " parts of the model on each of ", mesh.pipeline,
        " ranks are more than the ", stages, " stages of ", options.model.name, "; take ",
        stages / static_cast<std::size_t>(mesh.pipeline) > 1
            ? absl::StrCat("--pipeline-chunks ", stages / static_cast<std::size_t>(mesh.pipeline))
            : "another --pipeline-schedule than interleaved, or fewer ranks"));
  }
  absl::StatusOr<std::vector<std::size_t>> begins;
  if (cuts.empty()) {
    begins = count == 1 ? std::vector<std::size_t>{0}
                        : CutEvenly(CostsOf(options, model), static_cast<int>(count));
  } else if (cuts.size() + 1 == count) {
    std::vector<std::string> names;
    for (const Stage& stage : model.stages()) names.push_back(stage.name);
    begins = CutAt(names, cuts);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("--pipeline-cuts names ", cuts.size(), " stages, and a pipeline of ", count,
                     " parts needs ", count - 1, ": those with which all but the first begin"));
  }
  if (!begins.ok()) return begins.status();
  std::vector<StageRange> parts = RangesOf(*begins, stages);
  const absl::Status used = CheckUsers(model);
  if (!used.ok()) return used;
  return parts;
}

// What the flags of a mesh say together with its sizes.
absl::Status CheckMeshTogether(const Options& options, const Model& model, const Mesh& mesh,
                               Comm comm) {
  const auto mistake = [&mesh](const auto&... words) {
    return absl::InvalidArgumentError(absl::StrCat("--mesh ", mesh.Text(), ": ", words...));
  };
  const MeshOptions& flags = options.parallel.mesh;
  if (mesh.pipeline > 1 && options.parallel.zero > 1) {
    return mistake("--zero ", options.parallel.zero,
                   " under a pipeline would exchange gradients after each micro-batch, (m + 1)/2 "
                   "times what --zero 1 sends for m of them; take --zero 1");
  }
  if (mesh.pipeline > 1 && comm == Comm::kNccl) {
    return mistake(
        "a pipeline does not run over NCCL, which cannot begin to receive ahead; take "
        "pp=1, or --comm gloo on CPUs");
  }
  if (mesh.pipeline > 1 && options.parallel.sync_batch_norm) {
    return mistake(
        "under a pipeline --sync-bn would normalize each micro-batch by itself, and not the whole "
        "batch; take pp=1, or --zero without --mesh, or leave --sync-bn out");
  }
  if (mesh.pipeline > 1 && options.accumulate > 1) {
    return mistake("a pipeline has --micro-batches in place of --accumulate");
  }
  if (mesh.pipeline == 1 && (flags.micro_batches > 0 || !flags.cuts.empty() || flags.chunks > 0)) {
    return mistake(
        "--micro-batches, --pipeline-chunks and --pipeline-cuts are for a pipeline of "
        "several ranks: take pp=2 or more, or leave them out");
  }
  // A mesh that is chosen anew after a node is lost may have no pipeline left.
  if (mesh.pipeline == 1 && flags.driver == Driver::kRpc && !flags.request->choose) {
    return mistake(
        "--pipeline-driver rpc is for a pipeline of several ranks: take pp=2 or more, or "
        "leave it out");
  }
  if (!flags.splits_sequence || mesh.tensor == 1) {
    // A mesh that is chosen anew after a node is lost may have no tensor ranks left.
    if (!flags.splits_sequence || flags.request->choose) return absl::OkStatus();
    return mistake("--sequence-parallel is for tensor ranks: take tp=2 or more, or leave it out");
  }
  if (!model.splits_sequence() || options.shape.kind != DataShape::Kind::kText) {
    return mistake("--sequence-parallel is for models of sequences, as gpt, and ",
                   options.model.name, " cannot split one: leave it out");
  }
  if (options.shape.context % mesh.tensor != 0) {
    return mistake("--sequence-parallel cuts a sequence of ", options.shape.context, " over ",
                   mesh.tensor, " tensor ranks, and the parts would not be equal: take --context ",
                   (options.shape.context / mesh.tensor + 1) * mesh.tensor);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MeshPlan> PlanMesh(const Options& options, Model& model, const Mesh& mesh,
                                  Comm comm) {
  const absl::Status together = CheckMeshTogether(options, model, mesh, comm);
  if (!together.ok()) return together;
  const MeshOptions& flags = options.parallel.mesh;
  const std::string name = flags.driver == Driver::kRpc ? "gpipe" : flags.schedule;
  const int chunks = flags.chunks > 0 ? flags.chunks : name == "interleaved" ? kUsualChunks : 1;
  MeshPlan plan;
  if (mesh.pipeline > 1) {
    const int micro_batches =
        flags.micro_batches > 0 ? flags.micro_batches : kMicroBatchesPerRank * mesh.pipeline;
    auto made = MakeSchedule(name, {mesh.pipeline, chunks, micro_batches});
    if (!made.ok()) return made.status();
    plan.schedule = *std::move(made);
  }
  auto cuts = CutModel(options, model, mesh, mesh.pipeline > 1 ? chunks : 1);
  if (!cuts.ok()) return cuts.status();
  plan.cuts = *std::move(cuts);
  return plan;
}

std::vector<std::string> MeshLines(const Options& options, const MeshGroups& groups,
                                   const MeshPlan& plan, const Model& model,
                                   const DimensionBytes& foretold) {
  std::vector<std::string> lines = {MeshTable(groups.mesh, groups.hosts, foretold)};
  for (const std::string& warning : MeshWarnings(groups.mesh, groups.hosts, foretold)) {
    lines.push_back(absl::StrCat("warning: ", warning));
  }
  if (!plan.schedule) return lines;
  std::string cuts;
  for (const StageRange& part : plan.cuts) {
    absl::StrAppend(&cuts, cuts.empty() ? "" : ", ", model.stages()[part.begin].name);
  }
  const bool calls = options.parallel.mesh.driver == Driver::kRpc;
  lines.push_back(absl::StrCat(
      "pipeline: ",
      calls ? "gpipe by remote calls of each first rank" : options.parallel.mesh.schedule, ", ",
      plan.schedule->shape.micro_batches, " micro-batches; parts begin with ", cuts));
  return lines;
}

namespace {

constexpr std::int64_t kSequenceDimension = 1;  // of B x T x anything

// While one exists, what a pass through a model leaves in it can be changed: then it is put back.
class ModelAsItWas {
 public:
  explicit ModelAsItWas(const Model& model)
      : parameters_(model.Parameters()), buffers_(model.Buffers()) {
    for (const NamedTensor& buffer : buffers_) before_.push_back(buffer.tensor.detach().clone());
  }
  ~ModelAsItWas() {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      at::Tensor buffer = buffers_[i].tensor.detach();
      buffer.copy_(before_[i]);
    }
    for (NamedTensor& parameter : parameters_) parameter.tensor.mutable_grad().reset();
  }
  ModelAsItWas(const ModelAsItWas&) = delete;
  ModelAsItWas& operator=(const ModelAsItWas&) = delete;

 private:
  std::vector<NamedTensor> parameters_;
  const std::vector<NamedTensor> buffers_;
  std::vector<at::Tensor> before_;
};

}  // namespace

at::Tensor SomeInputs(const Options& options, const Model& model) {
  const at::TensorOptions type = model.Parameters().front().tensor.options().requires_grad(false);
  const DataShape& shape = options.shape;
  switch (shape.kind) {
    case DataShape::Kind::kText:
      return at::zeros({1, shape.context}, type.dtype(at::kLong));
    case DataShape::Kind::kImages:
    case DataShape::Kind::kTable:
      return at::zeros({1, shape.channels, shape.height, shape.width}, type);
    case DataShape::Kind::kSamples:
      break;
  }
  return {};
}

MeshDryRun::MeshDryRun(const Options& options)
    : shape_(options.shape),
      objective_(options.model.objective),
      autocast_(options.autocast_type()) {}

std::optional<MeshDryRun> MeshDryRun::Of(const Options& options, Model& model) {
  const at::NoGradGuard no_grad;
  const ModelAsItWas kept(model);
  at::Tensor x = SomeInputs(options, model);
  if (!x.defined()) return std::nullopt;
  MeshDryRun dry_run(options);
  const Autocast autocast(options.autocast_type(), x.is_cuda());
  try {
    for (std::size_t i = 0; i < model.stages().size(); ++i) {
      dry_run.inputs_.push_back(x);
      x = model.ForwardPart({}, {i, i + 1}, x);
    }
  } catch (const std::exception&) {  // the training will say so, if it meets it
    return std::nullopt;
  }
  return dry_run;
}

std::int64_t MeshDryRun::PipelineBytes(const std::vector<StageRange>& cuts, const Mesh& mesh,
                                       const MeshPlace& place, Driver driver, int shares) const {
  std::int64_t bytes = 0;
  for (auto part = static_cast<std::size_t>(place.pipeline);
       mesh.pipeline > 1 && part < cuts.size(); part += static_cast<std::size_t>(mesh.pipeline)) {
    if (part > 0) bytes += BytesInto(cuts[part].begin, shares);
    if (part + 1 < cuts.size()) bytes += BytesInto(cuts[part].end, shares);
  }
  // What the other ranks have for one another passes through the first: there and back.
  const bool relays = driver == Driver::kRpc && place.pipeline == 0;
  for (std::size_t part = 2; relays && part < cuts.size(); ++part) {
    bytes += 2 * BytesInto(cuts[part].begin, shares);
  }
  return bytes;
}

std::optional<std::int64_t> MeshDryRun::TensorBytes(Model& model,
                                                    const std::vector<StageRange>& cuts,
                                                    const Mesh& mesh, const MeshPlace& place,
                                                    TensorGroupLinks& links) const {
  std::int64_t sum = 0;
  for (auto part = static_cast<std::size_t>(place.pipeline); part < cuts.size();
       part += static_cast<std::size_t>(mesh.pipeline)) {
    const auto bytes = BytesWithin(model, cuts[part], links);
    if (!bytes) return std::nullopt;
    sum += *bytes;
  }
  return sum;
}

std::int64_t MeshDryRun::BytesInto(std::size_t stage, int shares) const {
  return static_cast<std::int64_t>(inputs_[stage].nbytes()) / shares;
}

std::optional<std::int64_t> MeshDryRun::BytesWithin(Model& model, const StageRange& range,
                                                    TensorGroupLinks& links) const {
  const ModelAsItWas kept(model);
  const Rehearsing rehearsing(links);
  at::Tensor x = inputs_[range.begin];
  if (links.splits_sequence() && range.begin > 0) {
    const std::int64_t own = x.size(kSequenceDimension) / links.parts();
    x = x.narrow(kSequenceDimension, links.part() * own, own);
  }
  x = at::zeros_like(x).requires_grad_(x.is_floating_point());
  try {
    at::Tensor result;
    {
      const Autocast autocast(autocast_, x.is_cuda());
      result = model.ForwardPart({}, range, x);
      const bool scores = range.end == model.stages().size();
      if (scores && shape_.kind == DataShape::Kind::kText) {
        const Objective objective = model.ObjectiveOf(objective_);
        result = objective.LossOf(result, at::zeros(inputs_[0].sizes(), inputs_[0].options()), {});
      }
    }
    if (result.requires_grad()) result.sum().backward();
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return rehearsing.bytes();
}

}  // namespace muster::trainer
