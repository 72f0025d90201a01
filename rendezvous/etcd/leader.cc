#include "rendezvous/etcd/leader.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::rendezvous::etcd {

namespace {

// "WRITER.NUMBER"; anything else is of no writer.
struct Sequence {
  std::string_view writer;
  std::uint64_t number = 0;
};

Sequence Parse(std::string_view value) {
  const std::size_t dot = value.rfind('.');
  std::uint64_t number = 0;
  if (dot == std::string_view::npos ||
      !absl::SimpleAtoi(std::string(value.substr(dot + 1)), &number)) {
    return {};
  }
  return {value.substr(0, dot), number};
}

}  // namespace

bool IsNext(std::string_view last, std::string_view next) {
  const Sequence before = Parse(last), after = Parse(next);
  return after.number <= (after.writer == before.writer ? before.number + 1 : 1);
}

std::string SequencedWriter::Name() const {
  return absl::StrCat(fence_.created, ".", self_);
}

void SequencedWriter::Write(std::vector<Operation> operations,
                            std::function<void(absl::Status)> done) {
  std::string value = absl::StrCat(Name(), ".", ++number_);
  operations.emplace_back(Put{sequence_, value});
  Try(std::make_shared<Writing>(Writing{std::move(operations), std::move(value), std::move(done)}));
}

void SequencedWriter::Try(std::shared_ptr<const Writing> writing) {
  Condition follows = WasCreated{sequence_, 0};
  if (last_.any) follows = HasValue{sequence_, last_.value};
  Transaction transaction{.conditions = {StillLeads(fence_), std::move(follows)},
                          .then = writing->operations,
                          .otherwise = {Get{fence_.key}, Get{sequence_}}};
  etcd_.Transact(
      std::move(transaction),
      lifetime_.Guard([this, writing = std::move(writing)](const absl::StatusOr<Outcome>& outcome) {
        Judge(outcome, writing);
      }));
}

// One for which there was no space, as far as its answers told, and which was done after all.
bool SequencedWriter::IsOfAnAttempt(const std::string& value) const {
  const Sequence sequence = Parse(value);
  return sequence.writer == Name() && sequence.number > done_ && sequence.number <= number_;
}

void SequencedWriter::Judge(const absl::StatusOr<Outcome>& outcome,
                            std::shared_ptr<const Writing> writing) {
  if (!outcome.ok()) {
    return writing->done(outcome.status());
  }
  if (!outcome->held) {
    const auto& found = outcome->found;
    const bool leads =
        found.size() == 2 && !found[0].keys.empty() && found[0].keys[0].created == fence_.created;
    if (!leads) return writing->done(absl::AbortedError("another daemon leads"));
    const std::string now = found[1].keys.empty() ? "" : found[1].keys[0].value;
    if (IsOfAnAttempt(now) && now != writing->value) {
      last_ = {true, now};
      return Try(std::move(writing));
    }
    if (now != writing->value) {
      return writing->done(absl::InternalError(absl::StrCat(
          sequence_, " in etcd is not what this daemon wrote there: someone has changed it, ",
          "or etcd was restored from a snapshot")));
    }
  }
  last_ = {true, writing->value};
  done_ = number_;
  revision_ = outcome->revision;
  writing->done(absl::OkStatus());
}

Candidate::Candidate(std::unique_ptr<Alarm> alarm, Etcd& etcd, Election::Options options,
                     Handlers handlers)
    : etcd_(etcd),
      key_(options.key),
      handlers_(std::move(handlers)),
      election_(std::move(options)),
      alarm_(std::move(alarm)) {
  // From the loop, as everything.
  alarm_->Set(Now(), [this] {
    election_.Begin(Now());
    Act();
  });
}

bool Candidate::Leads() const {
  return election_.Leads(Now());
}

void Candidate::Resign(std::function<void()> done) {
  resigned_ = std::move(done);
  election_.Resign();
  Act();
  // There was no lease to be given back.
  if (resigned_) std::exchange(resigned_, nullptr)();
}

void Candidate::Act() {
  if (std::exchange(acting_, true)) return;
  while (std::optional<Election::Action> action = election_.NextAction()) {
    std::visit([this](const auto& kind) { Do(kind); }, *action);
  }
  acting_ = false;
  ArmTimer();
}

void Candidate::ArmTimer() {
  const std::optional<Election::TimePoint> due = election_.NextDeadline();
  if (due == armed_for_) return;
  armed_for_ = due;
  alarm_->Set(due, [this] {
    armed_for_.reset();
    election_.Tick(Now());
    Act();
  });
}

template <typename Answer>
auto Candidate::Hear(void (Election::*hears)(std::uint64_t, const Answer&, Election::TimePoint),
                     std::uint64_t call) {
  return lifetime_.Guard([this, hears, call](const Answer& answer) {
    (election_.*hears)(call, answer, Now());
    Act();
  });
}

void Candidate::Do(const Election::AskForLease& ask) {
  etcd_.Grant(ask.ttl, Hear(&Election::OnLease, ask.call));
}

void Candidate::Do(const Election::Campaign& campaign) {
  etcd_.Attempt(campaign.transaction, Hear(&Election::OnCampaign, campaign.call));
}

void Candidate::Do(const Election::KeepAlive& keep) {
  etcd_.KeepAlive(keep.lease, Hear(&Election::OnKeptAlive, keep.call));
}

void Candidate::Do(const Election::AwaitDeletion& await) {
  etcd_.AwaitDeletion(await.key, await.after, Hear(&Election::OnDeletion, await.call));
}

void Candidate::Do(const Election::AskAfterLease& ask) {
  etcd_.TimeToLive(ask.lease, Hear(&Election::OnTimeToLive, ask.call));
}

void Candidate::Do(const Election::Revoke& revoke) {
  etcd_.Revoke(revoke.lease,
               lifetime_.Guard([done = std::exchange(resigned_, nullptr)](const absl::Status&) {
                 if (done) done();
               }));
}

void Candidate::Do(const Election::Won& won) {
  handlers_.won(Fence{key_, won.fence}, won.lease);
}

// Etcd's time goes on as well while this machine sleeps.
Election::TimePoint BootTimeAlarm::Now() const {
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return Election::TimePoint(std::chrono::seconds(now.tv_sec) +
                             std::chrono::nanoseconds(now.tv_nsec));
}

void BootTimeAlarm::Set(std::optional<Election::TimePoint> time, std::function<void()> ring) {
  if (!time) return timer_.Cancel();
  timer_.After(std::max<Election::Duration>(*time - Now(), Election::Duration::zero()),
               std::move(ring));
}

}  // namespace muster::rendezvous::etcd
