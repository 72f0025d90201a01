// Which hosts one process of the launch tree starts by itself, which it leaves to others, and what
// becomes of those that cannot be started.
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

#include "launcher/tree/host_news.h"

namespace muster::launcher {

// A machine without I/O or clock: what happens and the time in, what is to be done out. The process
// where the command was typed has one, with all hosts in its charge, and so has each host, with
// those that are handed to it. A link is one attempt at one host: a child process that, when all is
// well, becomes a connection.
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
// A host is handed on only to a host that has answered, so that an attempt that fails leaves
// nothing behind it: who hands a host on forgets how to start it until the link is gone. What a
// link that ended had started ends by itself, as it sees the same; `settle` is the time for that. A
// host that says that its former life is still ending is a failed attempt like any other.
class FanOut {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::milliseconds;
  using LinkId = std::uint64_t;

  struct Options {
    // The most links at a time, at least 1.
    int fanout = 16;
    // How long a host may take to answer.
    Duration answer_timeout = std::chrono::seconds(60);
    // How often a host is tried before it is given up.
    int attempts = 3;
    // How long all attempts together may take until one is answered, with the pauses between them;
    // counted from Adopt() on. Then a host that has not answered in half of what is left has
    // nothing to start any more, and gives way to hosts that were tried no more often than itself
    // where nobody else can take them: so those behind hosts that hang are tried in time. Unset: as
    // long as they take.
    std::optional<Duration> limit;
    // Before the second attempt; twice as long before each further one.
    Duration pause = std::chrono::milliseconds(500);
    // What a lost host's processes have to end in before it is tried again.
    Duration settle = std::chrono::seconds(2);
    // A host that was up for so long begins to count its attempts afresh when it is lost.
    Duration steady = std::chrono::seconds(60);
    // A host that is given up is tried again after each of these; unset: never.
    std::optional<Duration> retry;
  };

  // A host that is passed from one process's charge to another's.
  struct Charge {
    HostIndex host = 0;
    // Failures so far.
    int failures = 0;
    // It was given up before, and that was said.
    bool told_unreachable = false;

    bool operator==(const Charge&) const = default;
  };

  // Start a child process that connects to the host.
  struct Open {
    LinkId link = 0;
    HostIndex host = 0;
  };
  // Tell the host at the link's other end to adopt these.
  struct Hand {
    LinkId link = 0;
    std::vector<Charge> charges;
  };
  // End the link's child process. Nothing that comes from it afterwards counts.
  struct Close {
    LinkId link = 0;
  };
  // HostNews is to be passed on upwards.
  using Action = std::variant<Open, Hand, Close, HostNews>;
  using Actions = std::vector<Action>;

  explicit FanOut(const Options& options) : options_(options) {}

  // Takes hosts into charge, which are not there yet.
  Actions Adopt(const std::vector<Charge>& charges, Time now);

  // The first word from the link's other end: `endpoint` as in HostNews.
  Actions OnAnswer(LinkId link, const std::string& endpoint, Time now);

  // The link's child process has ended, or says nothing that makes sense.
  Actions OnLinkEnd(LinkId link, const std::string& reason, Time now);

  // What the host at the other end says about itself (kEnded), or about those handed to it. What is
  // about any other host is ignored.
  Actions OnNews(LinkId link, const HostNews& news, Time now);

  Actions OnTime(Time now);

  // The job is over or ends: nothing is started any more, attempts are ended, and hosts that are
  // not up are no longer in charge. Links to hosts that have answered remain.
  Actions Stop();

  // When OnTime is to be called next, if nothing happens before.
  std::optional<Time> next_deadline() const;

  std::size_t links() const { return links_.size(); }

 private:
  enum class State { kWaiting, kStarting, kUp, kHanded, kEnded, kGivenUp };

  struct Entry {
    State state = State::kWaiting;
    // The link in kStarting and kUp, and that to who has it in kHanded. Of kEnded: its own link, 0
    // when that is gone or was never ours.
    LinkId link = 0;
    int failures = 0;
    // kWaiting: not before this; kStarting: not longer than this. Meaningless otherwise.
    Time deadline{};
    // When it is given up, if Options::limit is set and it has not answered.
    std::optional<Time> give_up_at;
    // It was given up, that was said, and it has not answered since: further failures are no news.
    bool told_unreachable = false;
  };

  struct Link {
    HostIndex host = 0;
    bool answered = false;
    Time answered_at{};
    // When it is closed if there is no answer, and how long one was waited for by half of that
    // time.
    Time answer_by{};
    Duration half{};
    // What this host starts when it has answered, or has been told to start by now.
    std::set<HostIndex> charges;
  };

  void SetTimer(HostIndex host, Time deadline);
  void ClearTimer(HostIndex host);
  // Opens links and hands hosts on, for those whose time has come.
  void Place(Time now, Actions& actions);
  // The links in use beside `count` more are not above the fan-out.
  std::size_t FreeLinks() const;
  // Opens a link to the first and promises it the others.
  void Lead(const std::vector<HostIndex>& group, Time now, Actions& actions);
  // The hosts whose time has come, in groups for so many links; the first of each is to lead it.
  std::vector<std::vector<HostIndex>> Groups(std::size_t count) const;
  // Those whose time is over before there was a place for them.
  void GiveUpUntried(Time now, Actions& actions);
  // There are places for those that are ready and have failed at most so often.
  bool HasPlaces(int failures) const;
  void HandTo(LinkId link, const std::set<HostIndex>& hosts, Actions& actions);
  void Fail(HostIndex host, const std::string& reason, Time now, Actions& actions);
  void Lose(HostIndex host, const std::string& reason, bool was_steady, Time now, Actions& actions);

  const Options options_;

  std::map<HostIndex, Entry> entries_;
  std::map<LinkId, Link> links_;
  // Hosts in kWaiting whose time has come, and who are promised to nobody.
  std::set<HostIndex> ready_;
  // Hosts whose deadline is to come.
  std::set<std::pair<Time, HostIndex>> timers_;
  LinkId last_link_ = 0;
  bool stopped_ = false;
};

}  // namespace muster::launcher
