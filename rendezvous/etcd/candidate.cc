#include "rendezvous/etcd/candidate.h"

#include <time.h>

#include <algorithm>
#include <utility>
#include <variant>

#include <boost/asio/post.hpp>

namespace muster::rendezvous::etcd {

Candidate::Candidate(boost::asio::io_context& io, Etcd& etcd, Election::Options options,
                     Handlers handlers)
    : etcd_(etcd),
      key_(options.key),
      handlers_(std::move(handlers)),
      election_(std::move(options)),
      timer_(io) {
  boost::asio::post(io, lifetime_.Guard([this] {
    election_.Begin(Now());
    Act();
  }));
}

// Of the clock that goes on while the machine sleeps: etcd's goes on as well.
Election::TimePoint Candidate::Now() {
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return Election::TimePoint(std::chrono::seconds(now.tv_sec) +
                             std::chrono::nanoseconds(now.tv_nsec));
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
  timer_.cancel();
  if (!due) return;
  timer_.expires_after(std::max<Election::Duration>(*due - Now(), Election::Duration::zero()));
  timer_.async_wait(lifetime_.Guard([this, due](const boost::system::error_code& error) {
    if (error || armed_for_ != due) return;
    armed_for_.reset();
    election_.Tick(Now());
    Act();
  }));
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
