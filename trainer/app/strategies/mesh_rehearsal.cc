#include "trainer/app/strategies/mesh_rehearsal.h"

#include <exception>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "trainer/models/autocast.h"

namespace muster::trainer {
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

MeshRehearsal::MeshRehearsal(const Options& options)
    : shape_(options.shape),
      objective_(options.model.objective),
      autocast_(options.autocast_type()) {}

std::optional<MeshRehearsal> MeshRehearsal::Of(const Options& options, Model& model) {
  const at::NoGradGuard no_grad;
  const ModelAsItWas kept(model);
  at::Tensor x = SomeInputs(options, model);
  if (!x.defined()) return std::nullopt;
  MeshRehearsal rehearsal(options);
  const Autocast autocast(options.autocast_type(), x.is_cuda());
  try {
    for (std::size_t i = 0; i < model.stages().size(); ++i) {
      rehearsal.inputs_.push_back(x);
      x = model.ForwardPart({}, {i, i + 1}, x);
    }
  } catch (const std::exception&) {  // the training will say so, if it meets it
    return std::nullopt;
  }
  return rehearsal;
}

std::int64_t MeshRehearsal::BytesInto(std::size_t stage, int parts) const {
  return static_cast<std::int64_t>(inputs_[stage].nbytes()) / parts;
}

std::optional<std::int64_t> MeshRehearsal::BytesBetweenParts(Model& model, const StageRange& range,
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
        result = objective.loss(result, at::zeros(inputs_[0].sizes(), inputs_[0].options()));
      }
    }
    if (result.requires_grad()) result.sum().backward();
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return rehearsing.bytes();
}

}  // namespace muster::trainer
