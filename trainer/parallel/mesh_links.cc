#include "trainer/parallel/mesh_links.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "trainer/comm/host/operation_log.h"
#include "trainer/worker/timing.h"

namespace muster::trainer {

bool TensorGroupLinks::Rehearses(Operation operation, const at::Tensor& x) {
  if (dry_run_ == nullptr) return false;
  dry_run_->Add(Use::kActivations, operation, static_cast<std::int64_t>(x.nbytes()), std::nullopt);
  return true;
}

void TensorGroupLinks::Max(at::Tensor& tensor) {
  if (Rehearses(Operation::kAllReduce, tensor)) return;
  const at::NoGradGuard no_grad;
  c10d::AllreduceOptions options;
  options.reduceOp = c10d::ReduceOp::MAX;
  std::vector<at::Tensor> tensors = {tensor};
  const WaitScope waits;
  group_.Backend(Use::kActivations)->allreduce(tensors, options)->wait();
}

void TensorGroupLinks::Sum(at::Tensor& tensor) {
  if (Rehearses(Operation::kAllReduce, tensor)) return;
  group_.AllReduce(tensor, Use::kActivations);
}

TensorLinks::Pending TensorGroupLinks::BeginGather(const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  if (Rehearses(Operation::kAllGather, x)) {
    return [this, x] {
      return at::stack(std::vector<at::Tensor>(static_cast<std::size_t>(parts()), x));
    };
  }
  if (!runs_aside()) {
    return [all = group_.AllGather(x.unsqueeze(0), Use::kActivations)] { return all; };
  }
  const PendingGather gather = group_.AllGatherAsync(x, Use::kActivations);
  return [gather] {
    {
      const WaitScope waits;
      gather.work->wait();
    }
    return at::stack(gather.tensors);
  };
}

TensorLinks::Pending TensorGroupLinks::BeginSum(const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  at::Tensor sum = x.clone();  // a gradient may be shared with others
  if (Rehearses(Operation::kAllReduce, x)) return [sum] { return sum; };
  const bool half = sum.scalar_type() == at::kHalf || sum.scalar_type() == at::kBFloat16;
  if (!runs_aside() || half) {
    group_.AllReduce(sum, Use::kActivations);
    return [sum] { return sum; };
  }
  return [sum, work = group_.AllReduceAsync(sum, Use::kActivations)] {
    const WaitScope waits;
    work->wait();
    return sum;
  };
}

TensorLinks::Pending TensorGroupLinks::BeginScatter(const at::Tensor& x) {
  if (Rehearses(Operation::kReduceScatter, x)) return [x] { return x[0].clone(); };
  const at::Tensor own = group_.ReduceScatter(x, Use::kActivations).squeeze(0);
  return [own] { return own; };
}

std::vector<SharedParameters> FindShared(const Model& model, const PipelineShape& shape,
                                         const std::vector<StageRange>& parts) {
  std::map<std::string, std::set<int>> users;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    for (const NamedTensor& one : model.ParametersOf(parts[part])) {
      users[one.name].insert(shape.RankOf(static_cast<int>(part)));
    }
  }
  std::map<std::set<int>, std::vector<std::string>> names;
  for (const auto& [name, ranks] : users) {
    if (ranks.size() > 1) names[ranks].push_back(name);
  }
  std::vector<SharedParameters> shared;
  for (const auto& [ranks, their] : names) {
    shared.push_back({{ranks.begin(), ranks.end()}, their});
  }
  return shared;
}

void SumSharedGradients(const std::vector<NamedTensor>& parameters, Group& group) {
  if (group.size() == 1) return;
  const at::NoGradGuard no_grad;
  for (const NamedTensor& one : parameters) {
    at::Tensor& gradient = one.tensor.mutable_grad();
    if (!gradient.defined()) gradient = at::zeros_like(one.tensor);
    at::Tensor sum = gradient.contiguous();
    group.AllReduce(sum, Use::kGradients);
    if (!sum.is_same(gradient)) gradient.copy_(sum);
  }
}

namespace {

constexpr std::int64_t kBeforeSizes = 3;
constexpr std::size_t kMostLayouts = 4096;

}  // namespace

ActivationLayout LayoutOf(const at::Tensor& tensor) {
  return {tensor.scalar_type(), tensor.sizes().vec(),
          tensor.dim() == 4 && tensor.suggest_memory_format() == at::MemoryFormat::ChannelsLast};
}

std::string Described(const ActivationLayout& layout) {
  return absl::StrCat(absl::StrJoin(layout.sizes, " x "), " ", c10::toString(layout.type));
}

at::Tensor EmptyOf(const ActivationLayout& layout, const at::Device& device) {
  return at::empty(
      layout.sizes, at::TensorOptions().dtype(layout.type).device(device),
      layout.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
}

at::Tensor ElementsOf(const at::Tensor& tensor, const ActivationLayout& layout) {
  return layout.channels_last ? tensor.permute({0, 2, 3, 1}).contiguous() : tensor.contiguous();
}

at::Tensor HeaderOf(const ActivationLayout& layout) {
  const auto dimensions = static_cast<std::int64_t>(layout.sizes.size());
  if (dimensions > kHeaderNumbers - kBeforeSizes) {
    throw std::invalid_argument(
        absl::StrCat("a pipeline sends tensors of up to 12 dimensions, and a stage returned one "
                     "of ",
                     dimensions));
  }
  at::Tensor header = at::zeros({kHeaderNumbers}, at::kLong);
  auto* numbers = header.data_ptr<std::int64_t>();
  numbers[0] = static_cast<std::int64_t>(layout.type);
  numbers[1] = layout.channels_last ? 1 : 0;
  numbers[2] = dimensions;
  for (std::int64_t size : layout.sizes) *(numbers++ + kBeforeSizes) = size;
  return header;
}

ActivationLayout ReadHeader(const at::Tensor& header) {
  const at::Tensor here = header.cpu();
  const auto* numbers = here.data_ptr<std::int64_t>();
  const std::int64_t* sizes = numbers + kBeforeSizes;
  return {static_cast<at::ScalarType>(numbers[0]), {sizes, sizes + numbers[2]}, numbers[1] != 0};
}

const ActivationLayout* ActivationLayouts::Find(const Key& key) const {
  const auto found = known_.find(key);
  return found == known_.end() ? nullptr : &found->second;
}

void ActivationLayouts::Settle() {
  // Sender and receiver of a message have learned the same number of layouts of one part, but not
  // of all parts: so parts are counted separately.
  known_.merge(learned_);
  learned_.clear();
  std::map<int, std::size_t> of_part;
  for (const auto& [key, layout] : known_) ++of_part[key.part];
  std::erase_if(known_, [&](const auto& one) { return of_part[one.first.part] > kMostLayouts; });
}

PipelineMail::PipelineMail(Group& group, const PipelineSchedule& schedule,
                           const std::vector<std::vector<std::int64_t>>& input_sizes, bool training,
                           ActivationLayouts& layouts)
    : group_(group),
      schedule_(schedule),
      input_sizes_(input_sizes),
      training_(training),
      layouts_(layouts) {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    int place = 0;
    for (const PipelineAction& action : schedule.ranks[rank]) {
      if (action.kind != ActionKind::kBackwardWeight) {
        order_[{action.kind != ActionKind::kForward,
                schedule.shape.PartOf(static_cast<int>(rank), action.chunk), action.micro_batch}] =
            place;
      }
      ++place;
    }
  }
}

ActivationLayouts::Key PipelineMail::KeyOf(const PipelinePlace& from) const {
  return {training_, from.part, input_sizes_[static_cast<std::size_t>(from.micro_batch)]};
}

PipelinePlace PipelineMail::UserOf(const PipelinePlace& from) const {
  return {from.gradient, from.part + (from.gradient ? -1 : 1), from.micro_batch};
}

int PipelineMail::TagOf(const PipelinePlace& from, bool header) const {
  const int pass = from.part * schedule_.shape.micro_batches + from.micro_batch;
  return 3 * pass + (header ? 2 : from.gradient ? 1 : 0);
}

int PipelineMail::PlaceInOrder(const PipelinePlace& place) const {
  return order_.at(place);
}

void PipelineMail::Receive(const PipelinePlace& from, Incoming& incoming) {
  const int rank = schedule_.shape.RankOf(from.part);
  if (rank == group_.rank()) return;  // SendOutputs() delivers it
  const bool header = !incoming.tensor.defined();
  incoming.work = group_.ReceiveAsync(incoming.elements, rank, TagOf(from, header),
                                      header ? Use::kOther : Use::kActivations);
}

void PipelineMail::ExpectOutputs(const PipelinePlace& from) {
  const auto [found, fresh] = incoming_.try_emplace(from);
  if (!fresh) return;
  Incoming& incoming = found->second;
  if (const ActivationLayout* layout = layouts_.Find(KeyOf(from))) {
    incoming.tensor = EmptyOf(*layout, group_.device());
    incoming.elements = ElementsOf(incoming.tensor, *layout);
  } else {
    incoming.elements =
        at::empty({kHeaderNumbers}, at::TensorOptions().dtype(at::kLong).device(group_.device()));
  }
  Receive(from, incoming);
}

void PipelineMail::ExpectGradient(const PipelinePlace& from, const ActivationLayout& layout) {
  const auto [found, fresh] = incoming_.try_emplace(from);
  if (!fresh) return;
  Incoming& incoming = found->second;
  incoming.tensor = EmptyOf(layout, group_.device());
  incoming.elements = ElementsOf(incoming.tensor, layout);
  Receive(from, incoming);
}

at::Tensor PipelineMail::Take(const PipelinePlace& from) {
  Incoming incoming = std::move(incoming_.at(from));
  incoming_.erase(from);
  const int rank = schedule_.shape.RankOf(from.part);
  if (rank == group_.rank()) return std::move(incoming.tensor);
  Wait(incoming.work);
  if (!incoming.tensor.defined()) {
    const ActivationLayout layout = ReadHeader(incoming.elements);
    incoming.tensor = EmptyOf(layout, group_.device());
    incoming.elements = ElementsOf(incoming.tensor, layout);
    layouts_.Learn(KeyOf(from), layout);
    Receive(from, incoming);
    Wait(incoming.work);
  }
  const int computed = PlaceInOrder(from);
  std::erase_if(outgoing_, [&](Outgoing& sent) {
    if (sent.to != rank || sent.used_by > computed) return false;
    Wait(sent.work);  // it has arrived, so this returns at once
    return true;
  });
  return std::move(incoming.tensor);
}

void PipelineMail::Post(const PipelinePlace& from, const at::Tensor& elements) {
  const PipelinePlace user = UserOf(from);
  const int to = schedule_.shape.RankOf(user.part);
  outgoing_.push_back({to, PlaceInOrder(user), elements,
                       group_.SendAsync(elements, to, TagOf(from, false), Use::kActivations)});
}

void PipelineMail::SendOutputs(const PipelinePlace& from, const at::Tensor& outputs) {
  const PipelinePlace user = UserOf(from);
  const int to = schedule_.shape.RankOf(user.part);
  if (to == group_.rank()) {
    incoming_[from].tensor = outputs;
    return;
  }
  ActivationLayout layout = LayoutOf(outputs);
  if (const ActivationLayout* known = layouts_.Find(KeyOf(from))) {
    if (known->type != layout.type || known->sizes != layout.sizes) {
      throw std::invalid_argument(absl::StrCat(
          "a pipeline needs a model whose outputs have sizes that follow from those of its "
          "inputs: part ",
          from.part, " returned ", Described(layout), ", and ", Described(*known),
          " for other inputs of the same sizes"));
    }
    layout.channels_last = known->channels_last;
  } else {
    const at::Tensor header = HeaderOf(layout).to(group_.device());
    outgoing_.push_back({to, PlaceInOrder(user), header,
                         group_.SendAsync(header, to, TagOf(from, true), Use::kOther)});
    layouts_.Learn(KeyOf(from), layout);
  }
  Post(from, ElementsOf(outputs, layout));
  // In forward-only runs no message comes back to prove arrivals. Ranks then keep in step: none is
  // more than two groups of micro-batches ahead of the next, and none waits for long.
  if (!training_) WaitForOldest(2 * static_cast<std::size_t>(schedule_.shape.stages + 1));
}

void PipelineMail::SendGradient(const PipelinePlace& from, const at::Tensor& gradient,
                                const ActivationLayout& layout) {
  if (schedule_.shape.RankOf(UserOf(from).part) == group_.rank()) {
    incoming_[from].tensor = gradient;
    return;
  }
  Post(from, ElementsOf(gradient, layout));
}

void PipelineMail::Wait(PendingWork& work) {
  const WaitScope waits;
  const auto start = std::chrono::steady_clock::now();
  work->wait();
  waited_ += std::chrono::steady_clock::now() - start;
}

void PipelineMail::WaitForOldest(std::size_t most) {
  while (outgoing_.size() > most) {
    Wait(outgoing_.front().work);
    outgoing_.erase(outgoing_.begin());
  }
}

void PipelineMail::Finish() {
  WaitForOldest(0);
}

}  // namespace muster::trainer
