#include "trainer/app/strategies/mesh_part.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "trainer/comm/host/operation_log.h"
#include "trainer/optim/gradients.h"
#include "trainer/parallel/mesh_links.h"

namespace muster::trainer {
namespace {

constexpr double kAgainstDivisionByZero = 1e-6;  // as in Python's clip_grad_norm_
constexpr std::size_t kMostKeptNames = 256;
constexpr char kStepName[] = "step";  // the one number that an optimizer keeps

}  // namespace

// A tensor of the state dict.
struct MeshPart::Whole {
  std::string name;
  std::string first_name;  // of the same tensor
  std::vector<std::int64_t> sizes;
  int owner = 0;  // in the pipeline
};

MeshPart::MeshPart(std::unique_ptr<Model> model, std::vector<StageRange> parts,
                   const MeshGroups& groups, std::optional<MeshDryRun> dry_run)
    : model_(std::move(model)),
      parts_(std::move(parts)),
      groups_(groups),
      dry_run_(std::move(dry_run)) {
  std::unordered_map<const void*, std::string> first_names;
  for (const NamedTensor& parameter : model_->Parameters()) {
    const at::Tensor& tensor = parameter.tensor;
    parameter_bytes_ += static_cast<std::int64_t>(tensor.nbytes());
    at::Tensor shape = at::zeros({1}, tensor.options().requires_grad(false));
    shape = shape.view(std::vector<std::int64_t>(static_cast<std::size_t>(tensor.dim()), 1))
                .expand(tensor.sizes());
    shapes_.push_back({parameter.name, shape.set_requires_grad(tensor.requires_grad())});
  }
  for (const NamedTensor& one : model_->StateDict()) {
    const std::string& first =
        first_names.emplace(one.tensor.unsafeGetTensorImpl(), one.name).first->second;
    state_.push_back({one.name, first, one.tensor.sizes().vec(), OwnerOf(first)});
  }
}

MeshPart::~MeshPart() = default;

bool MeshPart::Has(const std::string& name) const {
  return std::any_of(stages_.begin(), stages_.end(),
                     [&](std::size_t stage) { return UsesTensor(model_->stages()[stage], name); });
}

// The first pipeline rank with a part that uses the parameter or buffer.
int MeshPart::OwnerOf(const std::string& name) const {
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    for (std::size_t i = parts_[part].begin; i < parts_[part].end; ++i) {
      if (UsesTensor(model_->stages()[i], name)) {
        return static_cast<int>(part) % groups_.mesh.pipeline;
      }
    }
  }
  return 0;  // of a buffer that no stage names: the same on all ranks
}

absl::Status MeshPart::Take(Shard shard, const MeshOptions& flags, World& world) {
  std::vector<at::Tensor> all;
  for (const NamedTensor& one : model_->Parameters()) all.push_back(one.tensor.detach());
  for (const NamedTensor& one : model_->Buffers()) all.push_back(one.tensor);
  if (world.size() > 1) world.all().Broadcast(all, /*root=*/0, Use::kOther);
  all.clear();
  if (groups_.mesh.tensor > 1) {
    splits_sequence_ = flags.splits_sequence;
    const auto links = std::make_shared<TensorGroupLinks>(*groups_.tensor, splits_sequence_);
    const absl::Status split = model_->SplitOver(links);
    if (!split.ok()) return split;
    if (dry_run_) {
      sample_bytes_.tensor =
          dry_run_->TensorBytes(*model_, parts_, groups_.mesh, groups_.place, *links);
    }
  } else if (dry_run_) {
    sample_bytes_.tensor = 0;
  }
  if (dry_run_) {
    const int shares = splits_sequence_ ? groups_.mesh.tensor : 1;
    sample_bytes_.pipeline =
        dry_run_->PipelineBytes(parts_, groups_.mesh, groups_.place, flags.driver, shares);
    dry_run_.reset();
  }

  std::vector<std::vector<NamedTensor>> units;
  std::set<std::string> seen;
  std::string shared;
  for (std::size_t part = static_cast<std::size_t>(groups_.place.pipeline); part < parts_.size();
       part += static_cast<std::size_t>(groups_.mesh.pipeline)) {
    std::vector<std::size_t>& of_chunk = units_.emplace_back();
    for (std::size_t i = parts_[part].begin; i < parts_[part].end; ++i) {
      of_chunk.push_back(units.size());
      stages_.push_back(i);
      std::vector<NamedTensor> unit = model_->ParametersOf({i, i + 1});
      // What does not change is kept by every rank; what two stages use is in the first's unit.
      std::erase_if(unit, [&](const NamedTensor& parameter) {
        if (!parameter.tensor.requires_grad()) return true;
        if (seen.insert(parameter.name).second) return false;
        shared = parameter.name;
        return true;
      });
      units.push_back(std::move(unit));
    }
  }
  if (shard == Shard::kParameters && !shared.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--zero 3 frees the parameters of a stage when it is done, and two stages ",
                     "share ", shared, "; take --zero 2"));
  }
  for (const NamedTensor& parameter : model_->Parameters()) {
    at::Tensor tensor = parameter.tensor;
    if (!Has(parameter.name)) {
      tensor.set_data(at::empty({0}, tensor.options()));  // another rank has it
    } else if (!tensor.requires_grad()) {
      buffers_.push_back(parameter);
    }
  }
  for (const NamedTensor& buffer : model_->Buffers()) {
    if (OwnerOf(buffer.name) == groups_.place.pipeline) buffers_.push_back(buffer);
  }
  const absl::Status shares = MeetSharers(world);
  if (!shares.ok()) return shares;
  sharded_ = std::make_unique<ShardedParameters>(std::move(units), shard, *groups_.data);
  return absl::OkStatus();
}

DimensionBytes MeshPart::Foretell(std::int64_t samples, Group& world) const {
  const auto of_step = [samples](const std::optional<std::int64_t>& bytes) {
    return bytes ? static_cast<double>(*bytes * samples) : std::nan("");
  };
  // Unknown if one rank does not know it.
  const std::vector<double> sums =
      world.Sum({of_step(sample_bytes_.pipeline), static_cast<double>(sharded_->FormulaBytes()),
                 of_step(sample_bytes_.tensor) + static_cast<double>(BytesOverSequence())});
  DimensionBytes bytes = {};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (!std::isnan(sums[i])) bytes[i] = std::llround(sums[i] / world.size());
  }
  return bytes;
}

absl::Status MeshPart::MeetSharers(World& world) {
  const int stages = groups_.mesh.pipeline;
  const PipelineShape shape = {stages, static_cast<int>(parts_.size()) / stages};
  for (const SharedParameters& one : FindShared(*model_, shape, parts_)) {
    if (std::find(one.ranks.begin(), one.ranks.end(), groups_.place.pipeline) == one.ranks.end()) {
      continue;
    }
    std::vector<int> members;
    for (const int rank : one.ranks) {
      members.push_back(groups_.mesh.RankOf({rank, groups_.place.data, groups_.place.tensor}));
    }
    auto group = world.MakeGroup(absl::StrCat("mesh/shared/", one.names[0]), members);
    if (!group.ok()) return group.status();
    shared_.push_back({{}, *std::move(group)});
    for (const NamedTensor& parameter : model_->Parameters()) {
      const bool theirs =
          std::find(one.names.begin(), one.names.end(), parameter.name) != one.names.end();
      if (theirs && parameter.tensor.requires_grad()) {
        shared_.back().parameters.push_back(parameter);
      }
    }
  }
  return absl::OkStatus();
}

void MeshPart::SumShared() {
  for (const Shared& one : shared_) SumSharedGradients(one.parameters, *one.group);
}

std::int64_t MeshPart::BytesOverSequence() const {
  std::int64_t bytes = 0;
  for (const NamedTensor& shard : sharded_->shards()) {
    const bool partial = splits_sequence_ && model_->SplitOf(shard.name) == TensorSplit::kWhole;
    if (partial) bytes += static_cast<std::int64_t>(shard.tensor.nbytes());
  }
  return RingBytes(groups_.mesh.tensor, bytes);
}

void MeshPart::SumOverSequence() {
  if (!splits_sequence_) return;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> flat;
  for (const NamedTensor& shard : sharded_->shards()) {
    if (model_->SplitOf(shard.name) != TensorSplit::kWhole) continue;
    gradients.push_back(shard.tensor.grad());
    flat.push_back(gradients.back().flatten());
  }
  if (flat.empty()) return;
  at::Tensor sums = at::cat(flat);
  groups_.tensor->AllReduce(sums, Use::kGradients);
  std::int64_t begin = 0;
  for (at::Tensor& gradient : gradients) {
    gradient.copy_(sums.narrow(0, begin, gradient.numel()).view_as(gradient));
    begin += gradient.numel();
  }
}

at::Tensor MeshPart::Forward(const RandomPlace& place, int chunk, const at::Tensor& inputs) {
  const auto index = static_cast<std::size_t>(chunk);
  const std::size_t part = index * static_cast<std::size_t>(groups_.mesh.pipeline) +
                           static_cast<std::size_t>(groups_.place.pipeline);
  at::Tensor x = inputs;
  for (std::size_t i = 0; i < parts_[part].size(); ++i) {
    const StageRange stage = {parts_[part].begin + i, parts_[part].begin + i + 1};
    x = sharded_->Run(units_[index][i], [&] { return model_->ForwardPart(place, stage, x); });
  }
  return x;
}

std::vector<NamedTensor> MeshPart::OwnState() const {
  std::vector<NamedTensor> own = sharded_->shards();
  own.insert(own.end(), buffers_.begin(), buffers_.end());
  return own;
}

void MeshPart::ShareBuffers() {
  if (groups_.mesh.data == 1) return;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> buffers;
  for (const NamedTensor& buffer : buffers_) buffers.push_back(buffer.tensor.detach());
  if (!buffers.empty()) groups_.data->Broadcast(buffers, /*root=*/0, Use::kOther);
}

at::Tensor MeshPart::Clip(double most, Group& world) {
  at::Tensor squares = SquaredNorm(world.device());
  world.Sum(squares);
  const at::Tensor norm = squares.sqrt();
  // Also when it is 1: asking would make a GPU wait.
  const at::Tensor scale = (most / (norm + kAgainstDivisionByZero)).clamp_max(1.0);
  for (const NamedTensor& shard : sharded_->shards()) {
    at::Tensor gradient = shard.tensor.grad();
    if (gradient.defined()) gradient.mul_(scale);
  }
  return norm;
}

bool MeshPart::GradientsFinite(Group& world) const {
  std::vector<at::Tensor> gradients;
  for (const NamedTensor& shard : sharded_->shards()) gradients.push_back(shard.tensor.grad());
  return world.Sum({AllFinite(gradients) ? 0.0 : 1.0})[0] == 0;
}

at::Tensor MeshPart::SquaredNorm(const at::Device& device) const {
  at::Tensor sum = at::zeros({}, at::device(device).dtype(at::kDouble));
  for (const NamedTensor& shard : sharded_->shards()) {
    const bool whole = model_->SplitOf(shard.name) == TensorSplit::kWhole;
    const at::Tensor& gradient = shard.tensor.grad();
    const bool elsewhere = OwnerOf(shard.name) != groups_.place.pipeline;
    if (!gradient.defined() || elsewhere || (whole && groups_.place.tensor > 0)) continue;
    sum.add_(gradient.to(at::kDouble).square().sum());
  }
  return sum;
}

at::Tensor MeshPart::FromOwner(const std::string& name, const at::Tensor& mine,
                               const std::vector<std::int64_t>& sizes) {
  const int owner = OwnerOf(name);
  if (groups_.mesh.pipeline == 1) return mine;
  at::Tensor tensor = owner == groups_.place.pipeline
                          ? mine.detach().contiguous()
                          : at::empty(sizes, mine.options().requires_grad(false));
  groups_.pipeline->Broadcast(tensor, owner, Use::kOther);
  return tensor;
}

std::vector<NamedTensor> MeshPart::WholeState(const std::vector<NamedTensor>& of_shards) {
  const at::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> own;
  for (const NamedTensor& one : sharded_->Whole(of_shards)) own[one.name] = one.tensor;
  for (const NamedTensor& one : buffers_) {
    const at::Tensor buffer = one.tensor.detach().clone();
    if (groups_.mesh.data > 1) groups_.data->Broadcast(buffer, /*root=*/0, Use::kOther);
    own[one.name] = buffer;
  }
  std::map<std::string, at::Tensor> by_name;
  for (const NamedTensor& one : model_->StateDict()) by_name[one.name] = one.tensor;
  std::map<std::string, at::Tensor> done;
  std::vector<NamedTensor> whole;
  for (const Whole& entry : state_) {
    at::Tensor& tensor = done[entry.first_name];
    if (!tensor.defined()) {
      at::Tensor mine = by_name[entry.first_name].detach();  // at least of the right type
      if (entry.owner == groups_.place.pipeline) {
        mine = model_->Whole(entry.first_name, own.at(entry.first_name));
      }
      tensor = FromOwner(entry.first_name, mine, entry.sizes);
    }
    whole.push_back({entry.name, tensor});
  }
  return whole;
}

std::vector<NamedTensor> MeshPart::WholeParameters(const std::vector<NamedTensor>& of_shards) {
  std::map<std::string, at::Tensor> state;
  for (const NamedTensor& one : WholeState(of_shards)) state[one.name] = one.tensor;
  std::vector<NamedTensor> whole;
  for (const NamedTensor& shape : shapes_) whole.push_back({shape.name, state.at(shape.name)});
  return whole;
}

std::vector<ParameterState> MeshPart::WholeOptimizer(const std::vector<ParameterState>& mine) {
  const at::NoGradGuard no_grad;
  std::map<std::string, std::map<std::string, at::Tensor>> own;
  std::string names;
  for (const ParameterState& state : sharded_->WholeState(mine)) {
    for (const NamedTensor& tensor : state.tensors)
      own[state.parameter][tensor.name] = tensor.tensor;
    names = absl::StrJoin(state.tensors, ",", [](std::string* text, const NamedTensor& tensor) {
      absl::StrAppend(text, tensor.name);
    });
  }
  // A rank whose stages have no parameters does not know what there is.
  for (const std::string& others : groups_.pipeline->Gather(names, kMostKeptNames)) {
    if (names.empty()) names = others;
  }
  if (names.empty()) return {};
  std::vector<ParameterState> whole;
  for (const NamedTensor& shape : shapes_) {
    if (!shape.tensor.requires_grad()) continue;
    ParameterState state{.parameter = shape.name};
    for (const absl::string_view word : absl::StrSplit(names, ',')) {
      const std::string name(word);
      const bool number = name == kStepName;
      at::Tensor tensor =
          number ? at::zeros({}, at::kFloat) : at::empty({0}, shape.tensor.options());
      if (OwnerOf(shape.name) == groups_.place.pipeline) {
        tensor = own[shape.name][name];
        if (!number) tensor = model_->Whole(shape.name, tensor);
      }
      const std::vector<std::int64_t> sizes =
          number ? std::vector<std::int64_t>() : shape.tensor.sizes().vec();
      state.tensors.push_back({name, FromOwner(shape.name, tensor, sizes)});
    }
    whole.push_back(std::move(state));
  }
  return whole;
}

std::vector<ParameterState> MeshPart::OwnOptimizer(const std::vector<ParameterState>& whole) const {
  std::vector<ParameterState> own;
  for (const ParameterState& state : whole) {
    if (!Has(state.parameter)) continue;
    ParameterState mine{.parameter = state.parameter};
    for (const NamedTensor& tensor : state.tensors) {
      mine.tensors.push_back({tensor.name, tensor.name == kStepName
                                               ? tensor.tensor
                                               : model_->Part(state.parameter, tensor.tensor)});
    }
    own.push_back(std::move(mine));
  }
  return sharded_->PartOfState(own);
}

void MeshPart::TakePart(const std::vector<NamedTensor>& whole,
                        const std::vector<NamedTensor>& of_shards) const {
  std::vector<NamedTensor> own;
  for (const NamedTensor& one : whole) {
    if (Has(one.name)) {
      own.push_back({one.name, model_->Part(one.name, one.tensor)});
    }
  }
  sharded_->TakePart(own, of_shards);
}

}  // namespace muster::trainer
