#include "trainer/comm/host_messages.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>
#include <utility>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "absl/strings/str_cat.h"

#include "trainer/comm/shm_mailbox.h"

namespace muster::trainer {
namespace {

// What all rings of a group take together, and the bounds of one.
constexpr std::size_t kAllRings = std::size_t{16} << 20;
constexpr std::size_t kLeastRing = std::size_t{64} << 10;
constexpr std::size_t kMostRing = std::size_t{1} << 20;

std::size_t RingBytes(std::size_t members) {
  const std::size_t pairs = std::max<std::size_t>(1, members * (members - 1));
  return std::clamp(std::bit_floor(kAllRings / pairs), kLeastRing, kMostRing);
}

}  // namespace

struct HostMessages::Parts {
  std::vector<int> members;  // ranks in the world
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
    const absl::Status status = mail_->Wait(ticket_);
    if (!status.ok()) throw std::runtime_error(std::string(status.message()));
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
    : parts_(new Parts{.members = facts.members, .meter = std::move(meter)}) {
  const std::size_t ring = RingBytes(facts.members.size());
  const int members = static_cast<int>(facts.members.size());
  absl::StatusOr<ShmSegment> segment = MakeSharedSegment(
      facts.layout, facts.members, ShmMailbox::SegmentBytes(members, ring), gather);
  if (!segment.ok()) throw std::runtime_error(std::string(segment.status().message()));
  parts_->mail = std::make_shared<ShmMailbox>(
      *std::move(segment),
      ShmMailbox::Options{.member = facts.rank, .ranks = facts.members, .timeout = facts.timeout});
  // Two can be on their way.
  largest_ = ring / 2;
}

HostMessages::~HostMessages() = default;

c10::intrusive_ptr<c10d::Work> HostMessages::Send(const at::Tensor& tensor, int to, int tag,
                                                  Use use) {
  Parts& p = *parts_;
  const FlightTicket flight = p.meter->flights.EnterPair(
      Operation::kSend,
      absl::StrCat("to rank ", p.members[static_cast<std::size_t>(to)], ", tag ", tag),
      tensor.nbytes());
  const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
  p.meter->traffic.Add(use, Operation::kSend, bytes, bytes);
  const ShmMailbox::Ticket ticket =
      p.mail->Send(to, tag, static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes());
  return c10::make_intrusive<MailWork>(p.mail, ticket, tensor, p.meter, flight);
}

c10::intrusive_ptr<c10d::Work> HostMessages::Receive(const at::Tensor& tensor, int from, int tag,
                                                     Use use) {
  Parts& p = *parts_;
  const FlightTicket flight = p.meter->flights.EnterPair(
      Operation::kReceive,
      absl::StrCat("from rank ", p.members[static_cast<std::size_t>(from)], ", tag ", tag),
      tensor.nbytes());
  p.meter->traffic.Add(use, Operation::kReceive, static_cast<std::int64_t>(tensor.nbytes()), 0);
  const ShmMailbox::Ticket ticket =
      p.mail->Receive(from, tag, static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes());
  return c10::make_intrusive<MailWork>(p.mail, ticket, tensor, p.meter, flight);
}

}  // namespace muster::trainer
