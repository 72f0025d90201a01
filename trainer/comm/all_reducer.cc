#include "trainer/comm/all_reducer.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/comm/recorded_group.h"
#include "trainer/comm/shm_all_reduce.h"

namespace muster::trainer {
namespace {

using Ranks = c10::intrusive_ptr<c10d::ProcessGroup>;

// Below this a piece costs more waiting than copying.
constexpr std::size_t kSmallestWindow = std::size_t{64} << 10;
// Others on the host wait for the leader, which waits for other hosts: let the leader's error come
// first.
constexpr std::chrono::seconds kLeadersAdvantage(5);

[[noreturn]] void Throw(const absl::Status& status) {
  throw std::runtime_error(std::string(status.message()));
}

ElementType TypeOf(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return ElementType::kFloat;
    case at::kDouble:
      return ElementType::kDouble;
    case at::kHalf:
      return ElementType::kHalf;
    case at::kBFloat16:
      return ElementType::kBFloat16;
    default:
      throw std::runtime_error(absl::StrCat("all-reduce: tensors of type ",
                                            c10::toString(tensor.scalar_type()),
                                            " cannot be averaged"));
  }
}

// The window for pieces of tensors of up to `largest_bytes`: smaller when /dev/shm is small, of
// which others get half. When even the smallest does not fit, making the segment will say so.
std::size_t WindowBytes(int members, std::size_t largest_bytes, const ShmOptions& options) {
  std::size_t window = std::max(kSmallestWindow, std::min(largest_bytes, options.piece_bytes));
  window = (window + ShmAllReduce::kLine - 1) / ShmAllReduce::kLine * ShmAllReduce::kLine;
  while (window >= 2 * kSmallestWindow &&
         ShmAllReduce::SegmentBytes(members, window) > ShmSegment::Free() / 2) {
    window = window / 2 / ShmAllReduce::kLine * ShmAllReduce::kLine;
  }
  return window;
}

}  // namespace

struct AllReducer::Parts {
  // Records and counts what `work` does with `tensor`, which is of the size that traffic.h says.
  void Do(Operation operation, const at::Tensor& tensor, Use use,
          const std::function<void()>& work);
  // Sum() without what is kept of it; `type` is that of `tensor`.
  void SumByShm(at::Tensor& tensor, ElementType type, double scale, Waiting waiting);

  const int hosts;
  const std::shared_ptr<GroupMeter> meter;
  std::unique_ptr<ShmAllReduce> shm{};
  Ranks leaders{};  // on leaders, when there are several hosts
};

std::size_t AllReducer::LeastBytes(std::size_t members) {
  return ShmAllReduce::SegmentBytes(static_cast<int>(members), kSmallestWindow);
}

AllReducer::AllReducer(const GroupFacts& facts, std::shared_ptr<GroupMeter> meter,
                       const GatherText& gather, const std::string& name, std::size_t largest_bytes,
                       const ShmOptions& options)
    : parts_(new Parts{.hosts = facts.layout.hosts, .meter = std::move(meter)}) {
  const HostLayout& layout = facts.layout;
  const int members = static_cast<int>(layout.local_ranks.size());
  const std::size_t window = WindowBytes(members, largest_bytes, options);
  absl::StatusOr<ShmSegment> segment =
      MakeSharedSegment(layout, facts.members, ShmAllReduce::SegmentBytes(members, window), gather);
  if (!segment.ok()) Throw(segment.status());
  ShmBarrier::Options barrier = {.member = layout.local_index, .timeout = facts.timeout};
  if (layout.hosts > 1) barrier.timeout += kLeadersAdvantage;
  for (const int local : layout.local_ranks) {
    barrier.ranks.push_back(facts.members[static_cast<std::size_t>(local)]);
  }
  parts_->shm = std::make_unique<ShmAllReduce>(*std::move(segment), std::move(barrier));
  if (layout.hosts > 1 && layout.leads()) {
    parts_->leaders = Recorded(facts.meet(name, layout.host, layout.hosts), parts_->meter,
                               FlightPart::kLeaders, std::nullopt);
  }
}

AllReducer::~AllReducer() = default;

void AllReducer::Sum(at::Tensor& tensor, double scale, Waiting waiting, Use use) {
  const at::NoGradGuard no_grad;
  Parts& p = *parts_;
  const ElementType type = TypeOf(tensor);
  p.Do(Operation::kAllReduce, tensor, use, [&] { p.SumByShm(tensor, type, scale, waiting); });
}

void AllReducer::ReduceScatter(const at::Tensor& whole, at::Tensor& mine, Use use) {
  Parts& p = *parts_;
  const ElementType type = TypeOf(whole);
  p.Do(Operation::kReduceScatter, whole, use, [&] {
    const absl::Status status = p.shm->ReduceScatter(
        type, static_cast<const std::byte*>(whole.data_ptr()),
        static_cast<std::size_t>(whole.numel()), static_cast<std::byte*>(mine.data_ptr()));
    if (!status.ok()) Throw(status);
  });
}

void AllReducer::AllGather(const at::Tensor& mine, at::Tensor& whole, Use use) {
  Parts& p = *parts_;
  p.Do(Operation::kAllGather, mine, use, [&] {
    const absl::Status status =
        p.shm->AllGather(static_cast<const std::byte*>(mine.data_ptr()), mine.nbytes(),
                         static_cast<std::byte*>(whole.data_ptr()));
    if (!status.ok()) Throw(status);
  });
}

void AllReducer::Parts::Do(Operation operation, const at::Tensor& tensor, Use use,
                           const std::function<void()>& work) {
  const std::int64_t moved = shm->moved_bytes();
  const FlightTicket ticket =
      meter->flights.Enter(FlightPart::kHost, operation, tensor.data_ptr(), tensor.nbytes());
  work();
  meter->flights.Leave(ticket);
  meter->traffic.Add(use, operation, static_cast<std::int64_t>(tensor.nbytes()),
                     hosts > 1 ? std::nullopt : std::optional(shm->moved_bytes() - moved));
}

void AllReducer::Parts::SumByShm(at::Tensor& tensor, ElementType type, double scale,
                                 Waiting waiting) {
  auto* const data = static_cast<std::byte*>(tensor.data_ptr());
  const auto count = static_cast<std::size_t>(tensor.numel());
  if (hosts == 1) {
    if (auto status = shm->AllReduce(type, data, count, scale, waiting); !status.ok()) {
      Throw(status);
    }
    return;
  }
  if (auto status = shm->Reduce(type, data, count, scale); !status.ok()) Throw(status);
  if (leaders) {
    try {
      SumOver(*leaders, tensor);
    } catch (...) {
      shm->Leave();  // the others of this host need not wait for the time to be over
      throw;
    }
  }
  if (auto status = shm->Broadcast(data, tensor.nbytes()); !status.ok()) Throw(status);
}

}  // namespace muster::trainer
