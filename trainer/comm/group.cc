#include "trainer/comm/group.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include "absl/strings/str_cat.h"

#include "trainer/comm/group_facts.h"
#include "trainer/comm/shm_exchange.h"
#include "trainer/worker/timing.h"

namespace muster::trainer {
namespace {

constexpr std::size_t kMessageBytes = 512;

}  // namespace

// The reducer is last, so that it is destroyed first.
struct Group::Joined {
  std::shared_ptr<GroupMeter> meter;
  std::array<c10::intrusive_ptr<c10d::ProcessGroup>, kUses> groups;  // by use
  int prepared = 0;  // how many reducers there have been
  std::unique_ptr<AllReducer> reducer;
  std::unique_ptr<HostMessages> messages;  // set by PrepareMessages
};

Group::Group(GroupFacts facts, const c10::intrusive_ptr<c10d::ProcessGroup>& ranks)
    : facts_(std::move(facts)), joined_(std::make_unique<Joined>()) {
  joined_->meter = std::make_shared<GroupMeter>(facts_);
  for (std::size_t use = 0; use < kUses; ++use) {
    joined_->groups[use] = Recorded(ranks, joined_->meter, FlightPart::kAll, static_cast<Use>(use));
  }
}

Group::~Group() = default;

const c10::intrusive_ptr<c10d::ProcessGroup>& Group::Backend(Use use) const {
  return joined_->groups[static_cast<std::size_t>(use)];
}

Traffic Group::traffic(Use use) const {
  return joined_->meter->traffic.Total(use, SharesMemory());
}

void Group::PrepareAllReduce(std::size_t largest_bytes, const ShmOptions& options) {
  if (comm() != Comm::kShm) return;
  joined_->reducer.reset();
  joined_->reducer = std::make_unique<AllReducer>(
      facts_, joined_->meter,
      [this](const std::string& mine) { return Gather(mine, kMessageBytes); },
      absl::StrCat("leaders/", joined_->prepared++), largest_bytes, options);
}

std::unique_ptr<RemoteCalls> Group::MakeRemoteCalls(RemoteCalls::Handler handler) {
  return facts_.calls(joined_->meter, std::move(handler));
}

bool Group::SharesMemory() const {
  return comm() == Comm::kShm && layout().hosts == 1;
}

AllReducer& Group::Reducer(std::size_t bytes) {
  if (!joined_->reducer) PrepareAllReduce(bytes);
  return *joined_->reducer;
}

void Group::AllReduce(at::Tensor& tensor, Use use, double scale, Waiting waiting) {
  const WaitScope waits;
  const at::NoGradGuard no_grad;
  if (comm() == Comm::kShm && tensor.is_floating_point()) {
    Reducer(tensor.nbytes()).Sum(tensor, scale, waiting, use);
    return;
  }
  SumOver(*Backend(use), tensor);
  if (scale != 1.0) tensor.mul_(scale);
}

PendingWork Group::AllReduceAsync(const at::Tensor& tensor, Use use) {
  std::vector<at::Tensor> tensors = {tensor};
  return Backend(use)->allreduce(tensors);
}

at::Tensor Group::ReduceScatter(const at::Tensor& whole, Use use) {
  const WaitScope waits;
  const at::NoGradGuard no_grad;
  if (whole.dim() == 0 || whole.size(0) % size() != 0) {
    throw std::invalid_argument(absl::StrCat("reduce-scatter: ", size(),
                                             " ranks cannot share a tensor of ",
                                             whole.dim() == 0 ? 1 : whole.size(0), " rows"));
  }
  if (size() == 1) return whole.clone();
  if (SharesMemory() && whole.is_floating_point()) {
    at::Tensor mine = at::empty_like(whole.narrow(0, 0, whole.size(0) / size()));
    Reducer(whole.nbytes()).ReduceScatter(whole, mine, use);
    return mine;
  }
  if (comm() == Comm::kNccl) {
    at::Tensor mine = at::empty_like(whole.narrow(0, 0, whole.size(0) / size()));
    at::Tensor sent = whole;
    Backend(use)->_reduce_scatter_base(mine, sent)->wait();
    return mine;
  }
  // Gloo has none. Sent as bytes, since some of its versions only move certain types.
  at::Tensor sent = whole.view({-1}).view(at::kByte);
  at::Tensor received = at::empty_like(sent);
  std::vector<std::int64_t> equal_splits;
  Backend(use)->alltoall_base(received, sent, equal_splits, equal_splits)->wait();

  const std::vector<at::Tensor> parts =
      received.view(whole.scalar_type()).view(whole.sizes()).chunk(size());
  const bool widen = whole.is_floating_point() && whole.element_size() < 4;
  at::Tensor sum = widen ? parts[0].to(at::kFloat) : parts[0].clone();
  for (std::size_t i = 1; i < parts.size(); ++i) sum.add_(parts[i]);
  return sum.to(whole.scalar_type());
}

PendingGather Group::AllGatherAsync(const at::Tensor& mine, Use use) {
  std::vector<std::vector<at::Tensor>> all(1);
  std::vector<at::Tensor> tensors;
  // As bytes, since Gloo does not support bfloat16.
  const auto bytes = [](const at::Tensor& tensor) { return tensor.view({-1}).view(at::kByte); };
  for (int rank = 0; rank < size(); ++rank) {
    tensors.push_back(at::empty(mine.sizes(), mine.options()));
    all[0].push_back(bytes(tensors.back()));
  }
  std::vector<at::Tensor> input = {bytes(mine)};
  PendingWork work = Backend(use)->allgather(all, input);
  return {std::move(work), std::move(tensors)};
}

PendingWork Group::AllGatherInto(at::Tensor& whole, const at::Tensor& mine, Use use) {
  const WaitScope waits;
  const at::NoGradGuard no_grad;
  if (size() == 1) {
    if (whole.data_ptr() != mine.data_ptr()) whole.copy_(mine);
    return {};
  }
  if (SharesMemory()) {
    Reducer(whole.nbytes()).AllGather(mine, whole, use);
    return {};
  }
  if (comm() == Comm::kNccl) {
    at::Tensor sent = mine;
    return Backend(use)->_allgather_base(whole, sent);
  }
  std::vector<std::vector<at::Tensor>> all = {whole.chunk(size())};
  std::vector<at::Tensor> input = {mine};
  return Backend(use)->allgather(all, input);
}

at::Tensor Group::AllGather(const at::Tensor& mine, Use use) {
  const WaitScope waits;
  const at::NoGradGuard no_grad;
  if (SharesMemory() && mine.dim() > 0) {
    std::vector<std::int64_t> sizes = mine.sizes().vec();
    sizes[0] *= size();
    at::Tensor whole = at::empty(sizes, mine.options());
    AllGatherInto(whole, mine, use);
    return whole;
  }
  const PendingGather gather = AllGatherAsync(mine, use);
  gather.work->wait();
  return at::cat(gather.tensors);
}

void Group::Broadcast(const at::Tensor& tensor, int root, Use use) {
  const WaitScope waits;
  c10d::BroadcastOptions options;
  options.rootRank = root;
  std::vector<at::Tensor> tensors = {tensor};
  Backend(use)->broadcast(tensors, options)->wait();
}

void Group::Broadcast(const std::vector<at::Tensor>& tensors, int root, Use use) {
  const WaitScope waits;
  const at::NoGradGuard no_grad;
  c10d::broadcast_coalesced(Backend(use), tensors, kBroadcastBucketBytes, root);
}

void Group::PrepareMessages() {
  if (!SharesMemory() || size() > HostMessages::kMostRanks) return;
  joined_->messages = std::make_unique<HostMessages>(
      facts_, joined_->meter,
      [this](const std::string& mine) { return Gather(mine, kMessageBytes); });
}

PendingWork Group::SendAsync(const at::Tensor& tensor, int to, int tag, Use use) {
  if (joined_->messages && joined_->messages->Carries(tensor.nbytes())) {
    return joined_->messages->Send(tensor, to, tag, use);
  }
  std::vector<at::Tensor> tensors = {tensor};
  return Backend(use)->send(tensors, to, tag);
}

PendingWork Group::ReceiveAsync(const at::Tensor& tensor, int from, int tag, Use use) {
  if (joined_->messages && joined_->messages->Carries(tensor.nbytes())) {
    return joined_->messages->Receive(tensor, from, tag, use);
  }
  std::vector<at::Tensor> tensors = {tensor};
  return Backend(use)->recv(tensors, from, tag);
}

void Group::Send(const at::Tensor& tensor, int to, int tag, Use use) {
  const WaitScope waits;
  SendAsync(tensor, to, tag, use)->wait();
}

void Group::Receive(const at::Tensor& tensor, int from, int tag, Use use) {
  const WaitScope waits;
  ReceiveAsync(tensor, from, tag, use)->wait();
}

void Group::Sum(at::Tensor& number) {
  const WaitScope waits;
  const at::NoGradGuard no_grad;
  SumOver(*Backend(Use::kOther), number);
}

std::vector<double> Group::Sum(const std::vector<double>& values) {
  const WaitScope waits;
  std::vector<at::Tensor> tensors = {at::tensor(values, at::kDouble).to(device())};
  Backend(Use::kOther)->allreduce(tensors)->wait();
  const at::Tensor sums = tensors[0].cpu();
  const auto* first = sums.data_ptr<double>();
  return std::vector<double>(first, first + sums.numel());
}

std::vector<std::string> Group::Gather(const std::string& mine, std::size_t most) {
  const WaitScope waits;
  const at::Tensor own = at::zeros({static_cast<std::int64_t>(most)}, at::kByte);
  std::memcpy(own.data_ptr(), mine.data(), std::min(mine.size(), most));
  const PendingGather gather = AllGatherAsync(own.to(device()), Use::kOther);
  gather.work->wait();
  std::vector<std::string> texts;
  for (const at::Tensor& text : gather.tensors) {
    const at::Tensor here = text.cpu();
    const auto* first = static_cast<const char*>(here.data_ptr());
    texts.emplace_back(first, strnlen(first, most));
  }
  return texts;
}

void Group::Barrier() {
  Sum({0});
}

}  // namespace muster::trainer
