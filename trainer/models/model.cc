#include "trainer/models/model.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "trainer/data/samples/sample_order.h"
#include "trainer/models/autocast.h"
#include "trainer/models/objective.h"

namespace muster::trainer {
namespace {

// Appends `items` with `prefix` in front of their names.
template <typename Items>
void Append(const Items& items, const std::string& prefix, std::vector<NamedTensor>* named) {
  for (const auto& item : items) named->push_back({prefix + item.key(), item.value()});
}

// `named` without tensors that already occur under another name.
std::vector<NamedTensor> EachOnce(std::vector<NamedTensor> named) {
  std::unordered_set<const void*> seen;
  std::erase_if(named, [&](const NamedTensor& one) {
    return !seen.insert(one.tensor.unsafeGetTensorImpl()).second;
  });
  return named;
}

// `images` with the channels innermost. A single channel only gets new strides instead of a copy:
// both layouts are the same bytes, and contiguous() would keep the strides, by which LibTorch
// chooses its algorithm.
at::Tensor ChannelsInnermost(const at::Tensor& images) {
  if (images.size(1) != 1) return images.contiguous(at::MemoryFormat::ChannelsLast);
  return images.reshape({images.size(0), images.size(2), images.size(3), 1}).permute({0, 3, 1, 2});
}

// The numbers of ranks that divide `total`: "1, 2 or 4".
std::string Divisors(int total) {
  std::vector<std::string> divisors;
  for (int ranks = 1; ranks <= total; ++ranks) {
    if (total % ranks == 0) divisors.push_back(absl::StrCat(ranks));
  }
  if (divisors.size() == 1) return divisors[0];
  const std::string last = std::move(divisors.back());
  divisors.pop_back();
  return absl::StrCat(absl::StrJoin(divisors, ", "), " or ", last);
}

TensorSplit Marked(const std::map<std::string, TensorSplit>& splits, const std::string& name) {
  const auto found = splits.find(name);
  return found == splits.end() ? TensorSplit::kWhole : found->second;
}

// The name of a kind of data.
const char* KindName(DataShape::Kind kind) {
  switch (kind) {
    case DataShape::Kind::kImages:
      return "images";
    case DataShape::Kind::kText:
      return "text";
    case DataShape::Kind::kTable:
      return "a table";
    case DataShape::Kind::kSamples:
      return "samples of its own";
  }
  return "";
}

}  // namespace

bool UsesTensor(const Stage& stage, const std::string& name) {
  const auto in = [&name](const std::string& module) {
    return absl::StartsWith(name, absl::StrCat(module, "."));
  };
  return stage.uses.empty() ? in(stage.name) : absl::c_any_of(stage.uses, in);
}

Model::Model(Network network, bool channels_last, bool recompute)
    : network_(std::move(network)), channels_last_(channels_last && network_.takes_images) {
  for (std::size_t i = 0; recompute && i < network_.stages.size(); ++i) {
    StageState state;
    for (const NamedTensor& buffer : Buffers()) {
      if (UsesTensor(network_.stages[i], buffer.name)) state.buffers.push_back(buffer.tensor);
    }
    state.has_parameters = absl::c_any_of(ParametersOf({i, i + 1}), [](const NamedTensor& one) {
      return one.tensor.requires_grad();
    });
    recomputed_.push_back(std::move(state));
  }
  if (!channels_last_) return;
  // Like Python's module.to(memory_format=torch.channels_last).
  for (NamedTensor& parameter : Parameters()) {
    at::Tensor& tensor = parameter.tensor;
    if (tensor.dim() != 4) continue;
    tensor.set_data(tensor.detach().contiguous(at::MemoryFormat::ChannelsLast));
  }
}

void Model::MoveTo(const at::Device& device, at::ScalarType dtype) {
  // Module::to(device, dtype) would also convert the counters to floating point.
  const auto move = [&](at::Tensor& tensor) {
    tensor.set_data(
        tensor.detach().to(device, tensor.is_floating_point() ? dtype : tensor.scalar_type()));
  };
  for (NamedTensor& parameter : Parameters()) move(parameter.tensor);
  for (NamedTensor& buffer : Buffers()) move(buffer.tensor);
}

at::Tensor Model::Forward(const at::Tensor& inputs) {
  return RunStages(all_stages(), inputs, std::nullopt);
}

at::Tensor Model::ForwardAt(const RandomPlace& place, const at::Tensor& inputs) {
  at::Tensor outputs = RunStages(all_stages(), inputs, WhereItMatters(place));
  if (at::GradMode::is_enabled() && !outputs.requires_grad()) {
    throw std::invalid_argument(
        "what the model returns does not depend on any parameter that requires a gradient: look "
        "for what is detached, or computed without gradients");
  }
  return outputs;
}

at::Tensor Model::ForwardPart(const RandomPlace& place, const StageRange& range,
                              const at::Tensor& inputs) {
  return RunStages(range, inputs, WhereItMatters(place));
}

std::optional<RandomPlace> Model::WhereItMatters(const RandomPlace& place) const {
  return network_.draws_random_numbers ? std::optional(place) : std::nullopt;
}

at::Tensor Model::RunStage(std::size_t index, const at::Tensor& inputs,
                           const std::optional<RandomPlace>& place) const {
  if (place) {
    at::manual_seed(MixedBits(MixedBits(place->seed, place->step, place->micro_batch),
                              static_cast<std::int64_t>(index), place->data_rank));
  }
  const Stage& stage = network_.stages[index];
  at::Tensor outputs = stage.forward(inputs);
  if (!outputs.defined()) {
    throw std::invalid_argument(
        absl::StrCat("stage '", stage.name, "' of the model returned no tensor"));
  }
  return outputs;
}

at::Tensor Model::RunStages(const StageRange& range, const at::Tensor& inputs,
                            const std::optional<RandomPlace>& place) {
  const bool repeatable = place || !network_.draws_random_numbers;
  const bool recomputes = !recomputed_.empty() && repeatable && network_.module->is_training();
  at::Tensor x = channels_last_ && range.begin == 0 ? ChannelsInnermost(inputs) : inputs;
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const auto run = [this, i, place, others = others_](const at::Tensor& into) {
      if (network_.others) *network_.others = others;
      return RunStage(i, into, place);
    };
    const bool last = i + 1 == network_.stages.size();
    if (!recomputes || last) {
      x = run(x);
    } else {
      x = Recomputed(x, {run, recomputed_[i].buffers, recomputed_[i].has_parameters});
    }
  }
  if (x.dim() == 0 || x.size(0) != inputs.size(0)) {
    throw std::invalid_argument(absl::StrCat(
        "the model has to return a row for each sample, and for ", inputs.size(0), " it returned ",
        x.dim() == 0 ? "a single number" : absl::StrCat(x.size(0), " rows")));
  }
  return x;
}

std::vector<NamedTensor> Model::ParametersOf(const StageRange& range) const {
  std::vector<NamedTensor> named = Parameters();
  std::erase_if(named, [&](const NamedTensor& parameter) {
    for (std::size_t i = range.begin; i < range.end; ++i) {
      if (UsesTensor(network_.stages[i], parameter.name)) return false;
    }
    return true;
  });
  return named;
}

std::vector<NamedTensor> Model::Parameters() const {
  std::vector<NamedTensor> named;
  Append(network_.module->named_parameters(), "", &named);
  return EachOnce(std::move(named));
}

std::vector<NamedTensor> Model::Buffers() const {
  std::vector<NamedTensor> named;
  Append(network_.module->named_buffers(), "", &named);
  return EachOnce(std::move(named));
}

std::vector<NamedTensor> Model::StateDict() const {
  std::vector<NamedTensor> named;
  for (const auto& module : network_.module->named_modules()) {
    const std::string prefix = module.key().empty() ? "" : module.key() + ".";
    Append(module.value()->named_parameters(/*recurse=*/false), prefix, &named);
    Append(module.value()->named_buffers(/*recurse=*/false), prefix, &named);
  }
  return named;
}

void Model::SetTraining(bool training) {
  network_.module->train(training);
}

void Model::SetOthers(std::vector<at::Tensor> others) {
  others_ = std::move(others);
}

void Model::SetBatchNorm(BatchNormFunction function) {
  if (network_.batch_norm) *network_.batch_norm = std::move(function);
}

absl::Status Model::SplitOver(std::shared_ptr<TensorLinks> links) {
  const int parts = links->parts();
  if (parts == 1) return absl::OkStatus();
  const auto bad = [parts](const auto&... why) {
    return absl::InvalidArgumentError(
        absl::StrCat("split the layers of the model over ", parts, " ranks: ", why...));
  };
  if (!network_.use_links) return bad("those of this model cannot be split");
  if (links->splits_sequence() && !network_.splits_sequence) {
    return bad("this model cannot split the sequence");
  }
  if (network_.tensor_divides % parts != 0) {
    return bad("its ", network_.tensor_divides, " ", network_.tensor_divides_what,
               " can be shared equally by ", Divisors(network_.tensor_divides), " ranks");
  }
  std::vector<NamedTensor> parameters = Parameters();
  for (const NamedTensor& parameter : parameters) {
    const std::int64_t size =
        SizeToDivide(parameter.tensor, Marked(network_.splits, parameter.name));
    if (size % parts == 0) continue;
    return bad("the ", size, " rows or columns of ", parameter.name, " cannot be shared equally");
  }
  links_ = std::move(links);
  for (NamedTensor& parameter : parameters) {
    const TensorSplit split = SplitOf(parameter.name);
    if (split == TensorSplit::kWhole) continue;
    rows_[parameter.name] = parameter.tensor.size(0);
    parameter.tensor.set_data(CutOf(parameter.tensor.detach(), split, links_->part(), parts));
  }
  network_.use_links(links_);
  return absl::OkStatus();
}

TensorSplit Model::SplitOf(const std::string& name) const {
  return links_ == nullptr ? TensorSplit::kWhole : Marked(network_.splits, name);
}

at::Tensor Model::Whole(const std::string& name, const at::Tensor& part) const {
  const TensorSplit split = SplitOf(name);
  if (split == TensorSplit::kWhole) return part;
  const at::Tensor all = links_->Gather(part.detach().unsqueeze(0), 0);
  return Join(all.unbind(0), split, rows_.at(name));
}

at::Tensor Model::Part(const std::string& name, const at::Tensor& whole) const {
  const TensorSplit split = SplitOf(name);
  if (split == TensorSplit::kWhole) return whole;
  return CutOf(whole.detach(), split, links_->part(), links_->parts());
}

Objective Model::ObjectiveOf(const Objective& objective) const {
  if (links_ == nullptr || network_.split_scores == 0) return objective;
  return ObjectiveOfParts(objective, network_.split_scores, links_);
}

absl::StatusOr<std::unique_ptr<Model>> MakeModel(const ModelRecipe& recipe, const DataShape& shape,
                                                 const ModelOptions& options) {
  const auto bad = [&recipe](const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat("make model ", recipe.name, ": ", why...));
  };
  const bool row = shape.kind == DataShape::Kind::kTable && recipe.takes_tables;
  if (shape.kind != recipe.takes && !row) {
    return bad("it takes ", KindName(recipe.takes), ", and the data is ", KindName(shape.kind));
  }
  at::manual_seed(options.seed);
  absl::StatusOr<Network> network = recipe.make(shape);
  if (absl::IsInvalidArgument(network.status())) return bad(network.status().message());
  if (!network.ok()) return network.status();
  if (network->module == nullptr) return bad("the network has no module (Network::module is null)");
  if (network->stages.empty()) return bad("the network has no stages (Network::stages is empty)");
  for (const Stage& stage : network->stages) {
    if (!stage.forward) return bad("stage '", stage.name, "' has no function (Stage::forward)");
  }
  return std::make_unique<Model>(*std::move(network), options.channels_last, options.recompute);
}

}  // namespace muster::trainer
