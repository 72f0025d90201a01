#include "trainer/comm/group.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace muster::trainer {

struct Group::Joined {
  c10::intrusive_ptr<c10d::ProcessGroup> group;
};

Group::Group(GroupFacts facts, c10::intrusive_ptr<c10d::ProcessGroup> ranks)
    : facts_(std::move(facts)), joined_(new Joined{std::move(ranks)}) {}

Group::~Group() = default;

std::vector<double> Group::Sum(const std::vector<double>& values) {
  std::vector<at::Tensor> tensors = {at::tensor(values, at::kDouble).to(device())};
  joined_->group->allreduce(tensors)->wait();
  const at::Tensor sums = tensors[0].cpu();
  const auto* first = sums.data_ptr<double>();
  return std::vector<double>(first, first + sums.numel());
}

std::vector<std::string> Group::Gather(const std::string& mine, std::size_t most) {
  const auto width = static_cast<std::int64_t>(most);
  const at::Tensor own = at::zeros({width}, at::kByte);
  std::memcpy(own.data_ptr(), mine.data(), std::min(mine.size(), most));
  std::vector<std::vector<at::Tensor>> all(1);
  for (int rank = 0; rank < size(); ++rank) all[0].push_back(at::empty_like(own).to(device()));
  std::vector<at::Tensor> input = {own.to(device())};
  joined_->group->allgather(all, input)->wait();
  std::vector<std::string> texts;
  for (const at::Tensor& text : all[0]) {
    const at::Tensor here = text.cpu();
    const auto* first = static_cast<const char*>(here.data_ptr());
    texts.emplace_back(first, strnlen(first, most));
  }
  return texts;
}

void Group::Barrier() {
  Sum({0});
}

const c10::intrusive_ptr<c10d::ProcessGroup>& Group::group() const {
  return joined_->group;
}

c10::intrusive_ptr<c10d::ProcessGroup> Group::MakeGlooGroup(const std::string& name, int place,
                                                            int ranks) {
  return facts_.meet(name, place, ranks);
}

}  // namespace muster::trainer
