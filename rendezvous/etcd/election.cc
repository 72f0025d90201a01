#include "rendezvous/etcd/election.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster::rendezvous::etcd {
namespace {

// Before the next attempt.
constexpr std::chrono::milliseconds kElectionPause(200);
// Before a lease that could not be kept alive is tried to be once more.
constexpr std::chrono::milliseconds kRepeat(50);
// Between two campaigns of who follows. Each is a transaction that a majority of etcd writes down.
constexpr std::chrono::seconds kBetweenCampaigns(10);
// Of the lease, in which it is asked for again; the rest is for answers that are late or lost.
constexpr int kKeepAlivesInALease = 4;

}  // namespace

void Election::Begin(TimePoint now) {
  if (state_ == State::kIdle) Grant(now);
}

void Election::Resign() {
  if (state_ == State::kOver) return;
  if (lease_ != 0) actions_.push_back(Revoke{lease_});
  state_ = State::kOver;
}

void Election::Grant(TimePoint now) {
  state_ = State::kGranting;
  asked_at_ = now;
  call_ = NextCall();
  actions_.push_back(AskForLease{call_, options_.ttl});
}

void Election::OnLease(std::uint64_t call, const absl::StatusOr<Granted>& granted, TimePoint now) {
  if (state_ != State::kGranting || call != call_) return;
  if (!granted.ok()) return Retreat(granted.status(), now);
  lease_ = granted->lease;
  lease_ends_ = {};
  keep_alive_ = 0;
  Renew(asked_at_, granted->ttl);
  Run();
}

void Election::Renew(TimePoint asked, std::chrono::milliseconds ttl) {
  ttl_ = ttl;
  lease_ends_ = std::max(lease_ends_, asked + Duration(ttl) / 20 * 19);
  next_keep_alive_ = asked + Duration(ttl) / kKeepAlivesInALease;
}

void Election::Run() {
  state_ = State::kCampaigning;
  call_ = NextCall();
  actions_.push_back(Campaign{call_,
                              {.conditions = {WasCreated{options_.key, 0}},
                               .then = {Put{options_.key, options_.name, lease_}},
                               .otherwise = {Get{options_.key}}}});
}

void Election::OnCampaign(std::uint64_t call, const absl::StatusOr<Outcome>& outcome,
                          TimePoint now) {
  if (call != call_) return;
  if (state_ == State::kLeading) {
    if (absl::IsAborted(outcome.status())) {
      // The key may be there again, and what was written since is not.
      Lose(std::string(outcome.status().message()));
    } else if (!outcome.ok()) {
      looks_again_ = now + kElectionPause;
    } else if (outcome->held) {
      call_ = NextCall();
      actions_.push_back(AwaitDeletion{call_, options_.key, outcome->revision});
    } else {
      Lose("its key in etcd is gone");
    }
    return;
  }
  if (state_ != State::kCampaigning) return;
  if (absl::IsNotFound(outcome.status())) lease_ = 0;
  if (!outcome.ok()) return Retreat(outcome.status(), now);
  trouble_.Over();
  fence_ = outcome->revision;
  if (!outcome->held) {
    if (outcome->found.empty() || outcome->found[0].keys.empty()) return Run();
    const KeyValue& key = outcome->found[0].keys[0];
    // Ours: the answer to an earlier attempt was lost.
    if (key.lease != lease_) return Follow(key, outcome->revision, now);
    fence_ = key.created;
  }
  Lead(now);
}

void Election::Follow(const KeyValue& key, Revision revision, TimePoint now) {
  state_ = State::kFollowing;
  followed_ = key.lease;
  look_ = 0;
  next_look_ = now + ttl_;
  next_campaign_ = now + kBetweenCampaigns;
  call_ = NextCall();
  actions_.push_back(AwaitDeletion{call_, options_.key, revision});
  const bool is_news = leader_ != key.value;
  if (is_news) actions_.push_back(Follows{leader_ = key.value});
  if (is_news && key.lease == 0) {
    actions_.push_back(
        Trouble{absl::StrCat("someone has written ", options_.key,
                             " in etcd by hand, so that it never expires; delete it")});
  }
  if (key.lease != 0 && key.lease == options_.of_the_dead) actions_.push_back(Revoke{key.lease});
}

void Election::LookAfterLease(TimePoint now) {
  look_ = NextCall();
  next_look_ = now + ttl_;
  actions_.push_back(AskAfterLease{look_, followed_});
}

void Election::OnTimeToLive(std::uint64_t call,
                            const absl::StatusOr<std::chrono::milliseconds>& ttl, TimePoint now) {
  if (state_ != State::kFollowing || call != look_) return;
  look_ = 0;
  next_look_ = now + ttl_;
  if (!ttl.ok() || *ttl >= std::chrono::milliseconds::zero()) return;
  actions_.push_back(Revoke{followed_});
  actions_.push_back(
      Trouble{"etcd has not ended the leader's expired lease, as a member's clock was set back; "
              "revoking it"});
}

void Election::Lead(TimePoint now) {
  state_ = State::kLeading;
  if (Leads(now)) {
    actions_.push_back(Won{fence_, lease_});
    return LookAtKey();
  }
  state_ = State::kConfirming;
  if (keep_alive_ == 0) AskToKeepAlive(now);
}

// Nobody but etcd, when the lease ends, takes the key away; except by hand. And then another leads
// at once, while this one has nothing to write for a while. It is read as well, as without that a
// member that is behind the others could answer.
void Election::LookAtKey() {
  call_ = NextCall();
  actions_.push_back(Campaign{call_,
                              {.conditions = {WasCreated{options_.key, fence_}},
                               .then = {Get{options_.key}},
                               .otherwise = {Get{options_.key}}}});
}

void Election::OnDeletion(std::uint64_t call, const absl::Status& ended, TimePoint now) {
  if (call != call_) return;
  if (state_ == State::kLeading) {
    if (ended.ok()) return Lose("its key in etcd was deleted");
    looks_again_ = now + kElectionPause;
  }
  if (state_ != State::kFollowing) return;
  leader_.clear();
  Run();
}

void Election::OnKeptAlive(std::uint64_t call, const absl::StatusOr<std::chrono::milliseconds>& ttl,
                           TimePoint now) {
  if (!HasLease() || call != keep_alive_) return;
  keep_alive_ = 0;
  if (ttl.ok()) {
    Renew(kept_alive_at_, *ttl);
    if (state_ == State::kConfirming) Lead(now);
    return;
  }
  if (absl::IsNotFound(ttl.status())) {
    if (state_ == State::kLeading) return Lose("etcd has ended its lease");
    lease_ = 0;
    return Retreat(absl::UnavailableError("etcd has ended its lease"), now);
  }
  // Another member may know more.
  next_keep_alive_ = now + kRepeat;
  // And the one that is to tell when the leader's key is deleted may have lost the others.
  if (state_ == State::kFollowing) Run();
}

void Election::AskToKeepAlive(TimePoint now) {
  keep_alive_ = NextCall();
  kept_alive_at_ = now;
  next_keep_alive_ = now + Duration(ttl_) / kKeepAlivesInALease;
  actions_.push_back(KeepAlive{keep_alive_, lease_});
}

void Election::Retreat(const absl::Status& why, TimePoint now) {
  state_ = State::kPausing;
  pause_ends_ = now + kElectionPause;
  // Each member may have another reason, again and again.
  if (!trouble_.IsDue(now)) return;
  actions_.push_back(Trouble{std::string(why.message())});
}

void Election::Lose(std::string why) {
  state_ = State::kOver;
  actions_.push_back(Lost{std::move(why)});
}

void Election::Tick(TimePoint now) {
  if (state_ == State::kPausing && now >= pause_ends_) {
    if (lease_ == 0) return Grant(now);
    Run();
  }
  if (!HasLease()) return;
  if (state_ == State::kLeading && now >= lease_ends_) {
    return Lose("etcd has not answered within its lease");
  }
  if (keep_alive_ == 0 && now >= next_keep_alive_) AskToKeepAlive(now);
  if (LooksAfterLease() && now >= next_look_) LookAfterLease(now);
  if (state_ == State::kFollowing && now >= next_campaign_) Run();
  if (state_ == State::kLeading && looks_again_ && now >= *looks_again_) {
    looks_again_.reset();
    LookAtKey();
  }
}

std::optional<Election::TimePoint> Election::NextDeadline() const {
  if (state_ == State::kOver) return std::nullopt;
  std::optional<TimePoint> due;
  const auto consider = [&due](TimePoint time) { due = std::min(due.value_or(time), time); };
  if (state_ == State::kPausing) consider(pause_ends_);
  if (state_ == State::kLeading) consider(lease_ends_);
  if (state_ == State::kLeading && looks_again_) consider(*looks_again_);
  if (HasLease() && keep_alive_ == 0) consider(next_keep_alive_);
  if (HasLease() && LooksAfterLease()) consider(next_look_);
  if (HasLease() && state_ == State::kFollowing) consider(next_campaign_);
  return due;
}

std::optional<Election::Action> Election::NextAction() {
  if (actions_.empty()) return std::nullopt;
  Action action = std::move(actions_.front());
  actions_.pop_front();
  return action;
}

}  // namespace muster::rendezvous::etcd
