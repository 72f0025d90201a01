#include "rendezvous/etcd/candidate.h"

#include <utility>
#include <variant>

namespace muster::rendezvous::etcd {

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

void Candidate::Do(const Election::AskForLease& ask) {
  etcd_.Grant(ask.ttl,
              lifetime_.Guard([this, call = ask.call](const absl::StatusOr<Granted>& granted) {
                election_.OnLease(call, granted, Now());
                Act();
              }));
}

void Candidate::Do(const Election::Campaign& campaign) {
  etcd_.Attempt(
      campaign.transaction,
      lifetime_.Guard([this, call = campaign.call](const absl::StatusOr<Outcome>& outcome) {
        election_.OnCampaign(call, outcome, Now());
        Act();
      }));
}

void Candidate::Do(const Election::KeepAlive& keep) {
  etcd_.KeepAlive(keep.lease,
                  lifetime_.Guard([this, call = keep.call](
                                      const absl::StatusOr<std::chrono::milliseconds>& ttl) {
                    election_.OnKeptAlive(call, ttl, Now());
                    Act();
                  }));
}

void Candidate::Do(const Election::AwaitDeletion& await) {
  etcd_.AwaitDeletion(await.key, await.after,
                      lifetime_.Guard([this, call = await.call](const absl::Status& ended) {
                        election_.OnDeletion(call, ended, Now());
                        Act();
                      }));
}

void Candidate::Do(const Election::AskAfterLease& ask) {
  etcd_.TimeToLive(
      ask.lease, lifetime_.Guard(
                     [this, call = ask.call](const absl::StatusOr<std::chrono::milliseconds>& ttl) {
                       election_.OnTimeToLive(call, ttl, Now());
                       Act();
                     }));
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

}  // namespace muster::rendezvous::etcd
