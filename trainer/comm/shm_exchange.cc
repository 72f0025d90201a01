#include "trainer/comm/shm_exchange.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/comm/group_facts.h"
#include "trainer/comm/host/shm_all_reduce.h"
#include "trainer/comm/host/shm_mailbox.h"

namespace muster::trainer {
namespace {

using Ranks = c10::intrusive_ptr<c10d::ProcessGroup>;

// Below this, waiting for a piece costs more than copying it.
constexpr std::size_t kSmallestWindow = std::size_t{64} << 10;
// The others on the host wait for the leader, which waits for other hosts: let the leader's error
// come first.
constexpr std::chrono::seconds kLeadersAdvantage(5);

void ThrowUnlessOk(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(std::string(status.message()));
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

// The window for pieces of tensors of up to `largest_bytes`: smaller if /dev/shm is small, half of
// which is left to others. If even the smallest does not fit, creating the segment reports it.
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
  // Records and counts `work` on `tensor`, which has the size required by FormulaParts().
  void Do(Operation operation, const at::Tensor& tensor, Use use,
          const std::function<void()>& work);
  // Sum() without recording; `type` is `tensor`'s.
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
  ThrowUnlessOk(segment.status());
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
    ThrowUnlessOk(p.shm->ReduceScatter(type, static_cast<const std::byte*>(whole.data_ptr()),
                                       static_cast<std::size_t>(whole.numel()),
                                       static_cast<std::byte*>(mine.data_ptr())));
  });
}

void AllReducer::AllGather(const at::Tensor& mine, at::Tensor& whole, Use use) {
  Parts& p = *parts_;
  p.Do(Operation::kAllGather, mine, use, [&] {
    ThrowUnlessOk(p.shm->AllGather(static_cast<const std::byte*>(mine.data_ptr()), mine.nbytes(),
                                   static_cast<std::byte*>(whole.data_ptr())));
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
    ThrowUnlessOk(shm->AllReduce(type, data, count, scale, waiting));
    return;
  }
  ThrowUnlessOk(shm->Reduce(type, data, count, scale));
  if (leaders) {
    try {
      SumOver(*leaders, tensor);
    } catch (...) {
      shm->Leave();  // so that the host's other ranks need not wait for the timeout
      throw;
    }
  }
  ThrowUnlessOk(shm->Broadcast(data, tensor.nbytes()));
}

namespace {

// The total size of a group's rings, and the bounds for one.
constexpr std::size_t kAllRings = std::size_t{16} << 20;
constexpr std::size_t kLeastRing = std::size_t{64} << 10;
constexpr std::size_t kMostRing = std::size_t{1} << 20;

std::size_t RingBytes(std::size_t members) {
  const std::size_t pairs = std::max<std::size_t>(1, members * (members - 1));
  return std::clamp(std::bit_floor(kAllRings / pairs), kLeastRing, kMostRing);
}

}  // namespace

struct HostMessages::Parts {
  std::shared_ptr<GroupMeter> meter;
  std::shared_ptr<ShmMailbox> mail{};
};

namespace {

// Keeps the tensor until the message is done, and the mailbox.
class MailWork : public c10d::Work {
 public:
  MailWork(std::shared_ptr<ShmMailbox> mail, ShmMailbox::Ticket ticket, at::Tensor tensor,
           std::shared_ptr<GroupMeter> meter, const FlightTicket& flight)
      : mail_(std::move(mail)),
        ticket_(ticket),
        tensor_(std::move(tensor)),
        meter_(std::move(meter)),
        flight_(flight) {}

  bool isCompleted() override { return mail_->Done(ticket_); }
  bool isSuccess() const override { return mail_->Done(ticket_); }
  void synchronize() override {}
  bool wait(std::chrono::milliseconds) override {
    ThrowUnlessOk(mail_->Wait(ticket_));
    meter_->flights.Leave(flight_);
    return true;
  }

 private:
  const std::shared_ptr<ShmMailbox> mail_;
  const ShmMailbox::Ticket ticket_;
  const at::Tensor tensor_;
  const std::shared_ptr<GroupMeter> meter_;
  const FlightTicket flight_;
};

}  // namespace

HostMessages::HostMessages(const GroupFacts& facts, std::shared_ptr<GroupMeter> meter,
                           const GatherText& gather)
    : parts_(new Parts{.meter = std::move(meter)}) {
  const std::size_t ring = RingBytes(facts.members.size());
  const int members = static_cast<int>(facts.members.size());
  absl::StatusOr<ShmSegment> segment = MakeSharedSegment(
      facts.layout, facts.members, ShmMailbox::SegmentBytes(members, ring), gather);
  ThrowUnlessOk(segment.status());
  parts_->mail = std::make_shared<ShmMailbox>(
      *std::move(segment),
      ShmMailbox::Options{.member = facts.rank, .ranks = facts.members, .timeout = facts.timeout});
  // Two must fit in flight.
  largest_ = ring / 2;
}

HostMessages::~HostMessages() = default;

c10::intrusive_ptr<c10d::Work> HostMessages::Send(const at::Tensor& tensor, int to, int tag,
                                                  Use use) {
  Parts& p = *parts_;
  const FlightTicket flight =
      p.meter->EnterMessage(Operation::kSend, to, absl::StrCat("tag ", tag), tensor.nbytes());
  const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
  p.meter->traffic.Add(use, Operation::kSend, bytes, bytes);
  const ShmMailbox::Ticket ticket =
      p.mail->Send(to, tag, static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes());
  return c10::make_intrusive<MailWork>(p.mail, ticket, tensor, p.meter, flight);
}

c10::intrusive_ptr<c10d::Work> HostMessages::Receive(const at::Tensor& tensor, int from, int tag,
                                                     Use use) {
  Parts& p = *parts_;
  const FlightTicket flight =
      p.meter->EnterMessage(Operation::kReceive, from, absl::StrCat("tag ", tag), tensor.nbytes());
  p.meter->traffic.Add(use, Operation::kReceive, static_cast<std::int64_t>(tensor.nbytes()), 0);
  const ShmMailbox::Ticket ticket =
      p.mail->Receive(from, tag, static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes());
  return c10::make_intrusive<MailWork>(p.mail, ticket, tensor, p.meter, flight);
}

}  // namespace muster::trainer
