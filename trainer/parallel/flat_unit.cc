#include "trainer/parallel/flat_unit.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"

#include "trainer/worker/timing.h"

namespace muster::trainer {
namespace {

// Alignment of parts, for fast access; the measurements were made with it.
constexpr std::int64_t kAlignedElements = 16;

std::int64_t RoundedUp(std::int64_t count, std::int64_t to) {
  return (count + to - 1) / to * to;
}

void CheckAlike(const std::vector<NamedTensor>& parameters) {
  for (const NamedTensor& parameter : parameters) {
    const at::Tensor& first = parameters.front().tensor;
    if (parameter.tensor.scalar_type() != first.scalar_type() ||
        !parameter.tensor.is_floating_point()) {
      throw std::invalid_argument(absl::StrCat(
          "share the parameters: ", parameter.name, " has the type ",
          c10::toString(parameter.tensor.scalar_type()), " and ", parameters.front().name, " ",
          c10::toString(first.scalar_type()), "; only real numbers of one type can be shared"));
    }
    if (!parameter.tensor.is_non_overlapping_and_dense()) {
      throw std::invalid_argument(absl::StrCat("share the parameters: the elements of ",
                                               parameter.name, " do not lie side by side"));
    }
  }
}

}  // namespace

FlatUnit::FlatUnit(std::vector<NamedTensor> parameters, Group& group, bool own)
    : parameters_(std::move(parameters)), group_(group) {
  CheckAlike(parameters_);
  const at::NoGradGuard no_grad;
  for (const NamedTensor& parameter : parameters_) {
    offsets_.push_back(elements_);
    elements_ += parameter.tensor.numel();
  }
  elements_ = RoundedUp(elements_, kAlignedElements * group.size());
  part_elements_ = elements_ / group.size();
  const at::Tensor& first = parameters_.front().tensor;
  element_size_ = first.element_size();
  // variable_data(): a separate version counter, so that autograd does not take gathering for a
  // modification of saved tensors.
  flat_ = at::zeros({elements_}, first.options().requires_grad(false)).variable_data();
  const std::int64_t own_begin = part_elements_ * group.rank();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor parameter = parameters_[i].tensor;
    const at::Tensor view = ViewOf(flat_, i);
    view.copy_(parameter);
    parameter.set_data(view);
    const std::int64_t begin = std::max(offsets_[i], own_begin);
    const std::int64_t end = std::min(offsets_[i] + parameter.numel(), own_begin + part_elements_);
    if (begin < end) {
      slices_.push_back({i, begin - offsets_[i], end - begin, begin - own_begin});
    }
  }
  part_ = own ? OwnPartOf(flat_).clone() : OwnPartOf(flat_);
}

FlatUnit::~FlatUnit() = default;

at::Tensor FlatUnit::ViewOf(const at::Tensor& flat, std::size_t parameter) const {
  const at::Tensor& like = parameters_[parameter].tensor;
  return flat.as_strided(like.sizes(), like.strides(), offsets_[parameter]);
}

at::Tensor FlatUnit::OwnPartOf(const at::Tensor& flat) const {
  return flat.narrow(0, part_elements_ * group_.rank(), part_elements_);
}

void FlatUnit::Free() {
  here_ = false;
  if (!std::exchange(allocated_, false)) return;
  // All views, including those saved by autograd, remain but refer to nothing.
  flat_.storage().unsafeGetStorageImpl()->set_data_ptr(at::DataPtr(nullptr, flat_.device()));
}

void FlatUnit::StartGather() {
  if (here_ || arriving_) return;
  if (!std::exchange(allocated_, true)) {
    c10::StorageImpl* const storage = flat_.storage().unsafeGetStorageImpl();
    storage->set_data_ptr(c10::GetAllocator(flat_.device().type())->allocate(storage->nbytes()));
  }
  arriving_ = group_.AllGatherInto(flat_, part_, Use::kParameters);
  here_ = !arriving_;
}

void FlatUnit::Gather() {
  StartGather();
  if (!arriving_) return;
  const WaitScope waits;
  std::exchange(arriving_, {})->wait();
  here_ = true;
}

at::Tensor FlatUnit::ReduceGradients() {
  const at::NoGradGuard no_grad;
  const at::Tensor gradients = at::empty({elements_}, flat_.options());
  std::int64_t end = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& gradient = parameters_[i].tensor.mutable_grad();
    const at::Tensor view = ViewOf(gradients, i);
    if (gradient.defined()) {
      view.copy_(gradient);
      gradient.reset();
    } else {
      view.zero_();
    }
    end = offsets_[i] + parameters_[i].tensor.numel();
  }
  gradients.narrow(0, end, elements_ - end).zero_();
  if (group_.size() == 1) return gradients;
  at::Tensor mine = group_.ReduceScatter(gradients, Use::kGradients);
  return mine.mul_(1.0 / group_.size());
}

at::Tensor FlatUnit::PartOf(const std::vector<at::Tensor>& whole) const {
  const at::NoGradGuard no_grad;
  const at::Tensor flat = at::zeros({elements_}, flat_.options());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (whole[i].defined()) ViewOf(flat, i).copy_(whole[i]);
  }
  return OwnPartOf(flat).clone();
}

std::vector<at::Tensor> FlatUnit::WholeOf(const at::Tensor& part) const {
  at::Tensor flat = at::empty({elements_}, part.options());
  const PendingWork work = group_.AllGatherInto(flat, part, Use::kOther);
  if (work) {
    const WaitScope waits;
    work->wait();
  }
  std::vector<at::Tensor> whole;
  for (std::size_t i = 0; i < parameters_.size(); ++i) whole.push_back(ViewOf(flat, i));
  return whole;
}

}  // namespace muster::trainer
