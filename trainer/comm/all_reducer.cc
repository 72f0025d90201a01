#include "trainer/comm/all_reducer.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/comm/flight_recorder.h"
#include "trainer/comm/recorded_group.h"
#include "trainer/comm/shared_segment.h"
#include "trainer/comm/shm_all_reduce.h"

namespace muster::trainer {
namespace {

using Ranks = c10::intrusive_ptr<c10d::ProcessGroup>;

// Below this a piece costs more waiting than copying.
constexpr std::size_t kSmallestWindow = std::size_t{64} << 10;
constexpr std::size_t kMessageBytes = 512;
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

// Sums in place over `ranks`. Gloo would add halves up in half precision, and some
// versions of it know no bfloat16, so those travel as float.
void SumOver(const Ranks& ranks, at::Tensor& tensor) {
  const bool widen = tensor.is_cpu() && tensor.element_size() < 4;
  std::vector<at::Tensor> tensors = {widen ? tensor.to(at::kFloat) : tensor};
  ranks->allreduce(tensors)->wait();
  if (widen) tensor.copy_(tensors[0]);
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
  explicit Parts(Group& group)
      : group(group), flights(std::make_shared<GroupFlights>(group.recorder(), group.name())) {}

  // Makes `shm`.
  void Share(std::size_t largest_bytes, const ShmOptions& options);
  // Sum() by `shm`; `type` is that of `tensor`.
  void SumByShm(at::Tensor& tensor, ElementType type, double scale, Waiting waiting);

  Group& group;
  const std::shared_ptr<GroupFlights> flights;
  Ranks leaders;                      // on leaders, when there are several hosts
  std::unique_ptr<ShmAllReduce> shm;  // with kShm
};

void AllReducer::Parts::Share(std::size_t largest_bytes, const ShmOptions& options) {
  const HostLayout& layout = group.layout();
  const int members = static_cast<int>(layout.local_ranks.size());
  const std::size_t window = WindowBytes(members, largest_bytes, options);
  absl::StatusOr<ShmSegment> segment = MakeSharedSegment(
      layout, ShmAllReduce::SegmentBytes(members, window),
      [this](const std::string& mine) { return group.Gather(mine, kMessageBytes); });
  if (!segment.ok()) Throw(segment.status());
  const auto advantage = layout.hosts > 1 ? kLeadersAdvantage : std::chrono::seconds(0);
  shm = std::make_unique<ShmAllReduce>(*std::move(segment),
                                       ShmBarrier::Options{.member = layout.local_index,
                                                           .ranks = layout.local_ranks,
                                                           .timeout = group.timeout() + advantage});
}

AllReducer::AllReducer(Group& group, std::size_t largest_bytes, const ShmOptions& options)
    : parts_(std::make_unique<Parts>(group)) {
  if (group.comm() != Comm::kShm) return;
  parts_->Share(largest_bytes, options);
  const HostLayout& layout = group.layout();
  // Every rank counts, so that the leaders agree on the name.
  static std::atomic<int> made = 0;
  const int number = made++;
  if (layout.hosts > 1 && layout.leads()) {
    parts_->leaders =
        Recorded(group.MakeGlooGroup(absl::StrCat("leaders/", number), layout.host, layout.hosts),
                 parts_->flights, FlightPart::kLeaders);
  }
}

AllReducer::~AllReducer() = default;

void AllReducer::Sum(at::Tensor& tensor, double scale, Waiting waiting) {
  const at::NoGradGuard no_grad;
  Parts& p = *parts_;
  if (!p.shm) {
    SumOver(p.group.group(), tensor);
    if (scale != 1.0) tensor.mul_(scale);
    return;
  }
  const ElementType type = TypeOf(tensor);
  const std::uint64_t ticket = p.flights->Enter(FlightPart::kHost, Operation::kAllReduce,
                                                tensor.data_ptr(), tensor.nbytes());
  p.SumByShm(tensor, type, scale, waiting);
  p.flights->Leave(ticket);
}

void AllReducer::Parts::SumByShm(at::Tensor& tensor, ElementType type, double scale,
                                 Waiting waiting) {
  auto* const data = static_cast<std::byte*>(tensor.data_ptr());
  const auto count = static_cast<std::size_t>(tensor.numel());
  if (group.layout().hosts == 1) {
    if (auto status = shm->AllReduce(type, data, count, scale, waiting); !status.ok()) {
      Throw(status);
    }
    return;
  }
  if (auto status = shm->Reduce(type, data, count, scale); !status.ok()) Throw(status);
  if (leaders) {
    try {
      SumOver(leaders, tensor);
    } catch (...) {
      shm->Leave();  // the others of this host need not wait for the time to be over
      throw;
    }
  }
  if (auto status = shm->Broadcast(data, tensor.nbytes()); !status.ok()) Throw(status);
}

std::optional<std::int64_t> AllReducer::counted_bytes() const {
  if (!parts_->shm || parts_->group.layout().hosts > 1) return std::nullopt;
  return parts_->shm->moved_bytes();
}

}  // namespace muster::trainer
