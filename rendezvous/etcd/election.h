// Which of several daemons leads: the one whose lease holds a key in etcd.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "rendezvous/etcd/adaptive_timeout.h"
#include "rendezvous/etcd/etcd.h"

namespace muster::rendezvous::etcd {

// One daemon's part in it. Calls and the time come in, actions are fetched with NextAction:
//
//   granting      --a lease--> campaigning
//   campaigning   --the key is ours--> leading, or confirming where the lease may have ended
//                 --it is another's--> following
//   confirming    --the lease is kept alive--> leading
//   following     --the key is deleted, or that cannot be known--> campaigning
//   leading       --Resign--> over; the lease may have ended, or the key is no longer ours: over
//   each but the last: an error --> pausing --> campaigning with the same lease, or granting where
//   etcd has ended that
//
// A lease is given up for another only when etcd says that it has ended: an attempt to get the key
// with the old one may be under way, and the key would be held by a lease that nobody keeps alive.
//
// Up to version 3.4 an etcd ends leases by the wall clock of its leading member: when that is set
// back, a leader's lease does not end, whatever has become of the leader
// (https://github.com/etcd-io/etcd/issues/12291). But it says how long a lease lasts by a clock
// that only goes forward. So who follows asks, and ends what is over itself.
//
// Who follows could do so for months with a password that no longer counts, as etcd goes on telling
// what it was once asked for, and then nobody could lead. So it campaigns again every now and then,
// although another leads: what is in the way is told while there is a leader.
//
// The fence is the revision in which the key was created: etcd takes it back when the lease ends,
// and the next leader's is another. Every transaction of a leader has it as a condition, so one
// that stood still for an hour changes nothing any more.
//
// What a leader says without etcd, such as the answer to a beat, is fenced by time. Its lease runs
// from when it was last *asked* for; etcd, which heard that later, gives the key to nobody before
// it is over. A twentieth of it is left for clocks that do not run alike. Whoever leads asks
// Leads() before each word.
//
// Deterministic, not thread-safe. After each call its owner carries out the actions, and makes sure
// that Tick is called at NextDeadline. Times are of a clock that goes on while the machine sleeps
// (CLOCK_BOOTTIME).
class Election {
 public:
  using TimePoint = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;
  using Duration = std::chrono::nanoseconds;

  struct Options {
    std::string key;   // the same for all
    std::string name;  // this daemon in messages, and what the key's value is
    // What is asked for; etcd may grant more.
    std::chrono::milliseconds ttl = std::chrono::seconds(2);
    // That of a daemon which is dead; what has it is not waited for. 0: none.
    LeaseId of_the_dead = 0;
  };

  // Calls of Etcd. Each answer comes back with the number.
  struct AskForLease {
    std::uint64_t call = 0;
    std::chrono::milliseconds ttl{};
  };
  struct Campaign {
    std::uint64_t call = 0;
    Transaction transaction;
  };
  struct KeepAlive {
    std::uint64_t call = 0;
    LeaseId lease = 0;
  };
  struct AwaitDeletion {
    std::uint64_t call = 0;
    std::string key;
    Revision after = 0;
  };
  struct AskAfterLease {
    std::uint64_t call = 0;
    LeaseId lease = 0;
  };
  struct Revoke {
    LeaseId lease = 0;
  };
  // For its owner.
  struct Won {
    Revision fence = 0;
    LeaseId lease = 0;
  };
  // Another one leads, by its name; told once for each.
  struct Follows {
    std::string leader;
  };
  // It leads no longer: not another word to anybody.
  struct Lost {
    std::string why;
  };
  // Why it cannot take part; told once a minute until it can again.
  struct Trouble {
    std::string why;
  };
  using Action = std::variant<AskForLease, Campaign, KeepAlive, AwaitDeletion, AskAfterLease,
                              Revoke, Won, Follows, Lost, Trouble>;

  explicit Election(Options options) : options_(std::move(options)) {}

  // To be called once.
  void Begin(TimePoint now);
  // Ends the lease, so that the next one need not wait for its end. Nothing follows.
  void Resign();

  void OnLease(std::uint64_t call, const absl::StatusOr<Granted>& granted, TimePoint now);
  void OnCampaign(std::uint64_t call, const absl::StatusOr<Outcome>& outcome, TimePoint now);
  void OnKeptAlive(std::uint64_t call, const absl::StatusOr<std::chrono::milliseconds>& ttl,
                   TimePoint now);
  void OnDeletion(std::uint64_t call, const absl::Status& ended, TimePoint now);
  void OnTimeToLive(std::uint64_t call, const absl::StatusOr<std::chrono::milliseconds>& ttl,
                    TimePoint now);

  // Does what is due; does nothing when called too early.
  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

  std::optional<Action> NextAction();

  // Another one leads, and this one could.
  bool StandsBy() const { return state_ == State::kFollowing; }

  // It leads, and its word counts.
  bool Leads(TimePoint now) const { return state_ == State::kLeading && now < lease_ends_; }

 private:
  enum class State {
    kIdle,
    kGranting,
    kCampaigning,
    kConfirming,
    kFollowing,
    kLeading,
    kPausing,
    kOver
  };

  void Grant(TimePoint now);
  void Run();
  void Follow(const KeyValue& key, Revision revision, TimePoint now);
  void LookAfterLease(TimePoint now);
  void Lead(TimePoint now);
  void LookAtKey();
  void Retreat(const absl::Status& why, TimePoint now);
  void Lose(std::string why);
  void Renew(TimePoint asked, std::chrono::milliseconds ttl);
  void AskToKeepAlive(TimePoint now);
  bool HasLease() const { return lease_ != 0 && state_ != State::kOver; }
  bool LooksAfterLease() const {
    return state_ == State::kFollowing && followed_ != 0 && look_ == 0;
  }
  std::uint64_t NextCall() { return ++last_call_; }

  const Options options_;
  State state_ = State::kIdle;
  LeaseId lease_ = 0;       // 0: none
  TimePoint lease_ends_{};  // at the earliest
  Revision fence_ = 0;
  std::chrono::milliseconds ttl_{};
  std::uint64_t last_call_ = 0;
  std::uint64_t call_ = 0;        // of the state's, whose answer counts
  std::uint64_t keep_alive_ = 0;  // under way; 0: none
  TimePoint asked_at_{};          // for the lease
  TimePoint kept_alive_at_{};     // asked to
  TimePoint next_keep_alive_{};
  TimePoint pause_ends_{};
  std::optional<TimePoint> looks_again_;  // whether the key is still ours
  LeaseId followed_ = 0;                  // the lease of who leads
  std::uint64_t look_ = 0;                // after that lease, under way; 0: none
  TimePoint next_look_{};
  TimePoint next_campaign_{};  // of who follows
  std::string leader_;         // last told
  Reminder trouble_;
  std::deque<Action> actions_;
};

// A clock, and one timer of it.

// What a Candidate has of the loop that it lives on; in tests that of a simulated machine.
class Alarm {
 public:
  virtual ~Alarm() = default;

  // Goes on while the machine sleeps (Election).
  virtual Election::TimePoint Now() const = 0;

  // Calls `ring` from the loop, once, when it is that time or is past it; never from within this
  // call, nor after the alarm's end. What was set before no longer rings. nullopt: nothing does.
  virtual void Set(std::optional<Election::TimePoint> time, std::function<void()> ring) = 0;
};

}  // namespace muster::rendezvous::etcd
