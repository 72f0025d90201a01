// Decides which hosts a process of the launch tree starts itself, which it hands to others, and
// when a host is given up.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace muster::launcher {

// News about one host, on its way up the launch tree.

// A host's index in the job's list of hosts.
using HostIndex = int;

struct HostNews {
  enum class What {
    kAnswered,     // Muster runs there, for this job
    kNotYet,       // an attempt failed; another will follow
    kUnreachable,  // given up, for now or, without MIN:MAX, for good
    kLost,         // was up; the connection to it, or to the host that started it, broke
    kEnded,        // its node exited with `exit_code`
  };

  HostIndex host = 0;
  What what = What::kAnswered;
  // The cause, for kNotYet, kUnreachable and kLost.
  std::string reason;
  int exit_code = 0;
  // For kAnswered: where other hosts can reach a rendezvous on this host.
  std::string endpoint;

  bool operator==(const HostNews&) const = default;
};

// A state machine without I/O or clock: events and the time go in, actions come out. The root of
// the tree has one, in charge of all hosts, and so has each host, in charge of those handed to it.
// A link is one attempt at one host: a child process that, if all goes well, becomes a connection.
//
// A host in charge is in one of these states:
//
//              +-------------- OnLinkEnd, too late: try again ---------------+
//              v                                                             |
//   Adopt -> kWaiting --- place for a link ---> kStarting --- OnAnswer ---> kUp ---- OnNews: kEnded
//              |  ^                                 |                         |              |
//              |  +------- try again after a pause -+                         |              v
//              |  +------- its link ends ----- kHanded <--- to a host in kUp -+           kEnded
//              |                                                            (others, not itself)
//              +-------------- after `attempts` failures ------------------------------> kGivenUp
//
// A host is handed only to a host that has answered, so that a failed attempt leaves nothing
// behind: the old owner does not start the host itself until the new owner's link is gone. When a
// link ends, the processes that it had started notice and exit; `settle` is the time for that. If a
// host says that its previous processes are still stopping, that is a failed attempt like any
// other.
class FanOut {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::milliseconds;
  using LinkId = std::uint64_t;

  struct Options {
    // The maximum number of links at a time, at least 1.
    int fanout = 16;
    // How long to wait for a host's answer.
    Duration answer_timeout = std::chrono::seconds(60);
    // Attempts before a host is given up.
    int attempts = 3;
    // The time for all attempts at a host with the pauses between them, counted from Adopt(). A
    // host with others promised to it that has not answered in half of its remaining time loses
    // them, and its link, too, if hosts with no more failures need it: so hosts listed after
    // hanging ones are tried in time. Unset: no limit.
    std::optional<Duration> limit;
    // The pause before the second attempt; it doubles for each further one.
    Duration pause = std::chrono::milliseconds(500);
    // How long a lost host's processes have to exit before it is tried again.
    Duration settle = std::chrono::seconds(2);
    // A host that was up for this long starts with fresh attempts when it is lost.
    Duration steady = std::chrono::seconds(60);
    // The interval at which a host that is given up is tried again; unset: never.
    std::optional<Duration> retry;
  };

  // A host to be handed from one process to another.
  struct Charge {
    HostIndex host = 0;
    // Failures so far.
    int failures = 0;
    // It was given up before, and that was reported.
    bool told_unreachable = false;

    bool operator==(const Charge&) const = default;
  };

  // Start a child process that connects to the host.
  struct Open {
    LinkId link = 0;
    HostIndex host = 0;
  };
  // Send Adopt with these hosts to the link's other end.
  struct Hand {
    LinkId link = 0;
    std::vector<Charge> charges;
  };
  // End the link's child process. Ignore anything that it sends afterwards.
  struct Close {
    LinkId link = 0;
  };
  // HostNews is passed on upwards.
  using Action = std::variant<Open, Hand, Close, HostNews>;
  using Actions = std::vector<Action>;

  explicit FanOut(const Options& options) : options_(options) {}

  // Takes charge of hosts; known ones are ignored.
  Actions Adopt(const std::vector<Charge>& charges, Time now);

  // The link's host has answered; `endpoint` is as in HostNews.
  Actions OnAnswer(LinkId link, const std::string& endpoint, Time now);

  // The link's child process has exited or sent garbage.
  Actions OnLinkEnd(LinkId link, const std::string& reason, Time now);

  // News from the link's host about itself (kEnded) or about hosts handed to it. Ignores news about
  // other hosts.
  Actions OnNews(LinkId link, const HostNews& news, Time now);

  Actions OnTime(Time now);

  // The job is over or ending: starts no more hosts, ends pending attempts, and forgets hosts that
  // are not up. Links to hosts that have answered remain.
  Actions Stop();

  // When OnTime must be called next if nothing else happens.
  std::optional<Time> next_deadline() const;

  std::size_t links() const { return links_.size(); }

 private:
  enum class State { kWaiting, kStarting, kUp, kHanded, kEnded, kGivenUp };

  struct Entry {
    State state = State::kWaiting;
    // kStarting, kUp: the host's own link. kHanded: the new owner's link. kEnded: its own link, or
    // 0 if that is gone or the host was handed on.
    LinkId link = 0;
    int failures = 0;
    // kWaiting: the earliest retry. kStarting: the time limit. Otherwise meaningless.
    Time deadline{};
    // When to give up a host that has not answered; set if Options::limit is.
    std::optional<Time> give_up_at;
    // It was reported as unreachable and has not answered since: further failures are not reported.
    bool told_unreachable = false;
  };

  struct Link {
    HostIndex host = 0;
    bool answered = false;
    Time answered_at{};
    // When an unanswered link is closed, and half of the time until then.
    Time answer_by{};
    Duration half{};
    // The hosts that this one will start once it has answered, or has been told to start.
    std::set<HostIndex> charges;
  };

  void SetTimer(HostIndex host, Time deadline);
  void ClearTimer(HostIndex host);
  // Opens links for the ready hosts, or hands them on.
  void Place(Time now, Actions& actions);
  // How many more links the fan-out allows.
  std::size_t FreeLinks() const;
  // Opens a link to the first host, and promises it the others.
  void Lead(const std::vector<HostIndex>& group, Time now, Actions& actions);
  // Splits the ready hosts into `count` groups; the first of each leads it.
  std::vector<std::vector<HostIndex>> Groups(std::size_t count) const;
  // Gives up ready hosts whose time ran out before a link was free.
  void GiveUpUntried(Time now, Actions& actions);
  // Whether there are links for all ready hosts with at most this many failures.
  bool HasPlaces(int failures) const;
  void HandTo(LinkId link, const std::set<HostIndex>& hosts, Actions& actions);
  void Fail(HostIndex host, const std::string& reason, Time now, Actions& actions);
  void Lose(HostIndex host, const std::string& reason, bool was_steady, Time now, Actions& actions);

  const Options options_;

  std::map<HostIndex, Entry> entries_;
  std::map<LinkId, Link> links_;
  // Hosts in kWaiting that can be tried now and are not promised to another host.
  std::set<HostIndex> ready_;
  // Hosts with a deadline.
  std::set<std::pair<Time, HostIndex>> timers_;
  LinkId last_link_ = 0;
  bool stopped_ = false;
};

}  // namespace muster::launcher
