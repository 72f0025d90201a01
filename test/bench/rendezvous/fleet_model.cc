#include "test/bench/rendezvous/fleet_model.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rendezvous/core/coordinator.h"

namespace muster::rendezvous::bench {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr TimePoint kStart{hours(1)};
constexpr Duration kBeat = seconds(1);
constexpr int kBeatsInPeace = 5;

Duration ThreadTime() {
  timespec spent{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
}

// What is to happen, in order of time; at the same time in order of arrival.
class Future {
 public:
  void At(TimePoint when, std::function<void()> what) {
    items_.push({when, next_++, std::move(what)});
  }
  // Until nothing is left to happen.
  void Run() {
    while (!items_.empty()) {
      Item item = std::move(const_cast<Item&>(items_.top()));
      items_.pop();
      now_ = item.when;
      item.what();
    }
  }
  TimePoint now() const { return now_; }

 private:
  struct Item {
    TimePoint when;
    std::uint64_t number;
    std::function<void()> what;
    bool operator<(const Item& other) const {
      return std::tie(when, number) > std::tie(other.when, other.number);
    }
  };

  std::priority_queue<Item> items_;
  std::uint64_t next_ = 0;
  TimePoint now_ = kStart;
};

// Does one thing after the other.
class Processor {
 public:
  // When a task is done that is there from `now` on.
  TimePoint Do(TimePoint now, Duration cost) {
    free_ = std::max(now, free_) + cost;
    busy_ += cost;
    return free_;
  }
  Duration busy() const { return busy_; }

 private:
  TimePoint free_ = kStart;
  Duration busy_{};
};

struct Said {
  int agent = 0;
  Event event;
};
struct Told {
  int agent = 0;
  Directive directive;
};

class Fleet {
 public:
  explicit Fleet(const FleetModel& model)
      : model_(model),
        links_(model.rack == 0 ? model.agents : (model.agents + model.rack - 1) / model.rack),
        agents_(model.agents) {}

  FleetFigures Run() {
    const int last = model_.agents - 1;
    if (model_.rack != 0) {
      for (int link = 0; link < static_cast<int>(links_.size()); ++link) Connect(link);
    }
    for (int agent = 0; agent < last; ++agent) SetOut(agent);
    future_.Run();
    figures_.gathering = future_.now() - kStart;

    TimePoint begun = future_.now();
    SetOut(last);
    future_.Run();
    figures_.last_join = all_assigned_ - begun;
    figures_.started = std::exchange(assigned_, 0);

    begun = future_.now();
    const WorkersOutcome failed{.failure = WorkerFailure{.exit_code = 1}};
    Say(0, WorkersExited{{incarnation_, 0}, failed});
    future_.Run();
    figures_.restart = all_assigned_ - begun;
    figures_.started_again = assigned_;

    Rest();
    return figures_;
  }

 private:
  // A connection to the daemon: an aggregator's, or an agent's own.
  struct Link {
    Processor processor;
    std::vector<Said> unsent;
  };
  struct Agent {
    RoundNumber round = kNoRound;
  };

  int LinkOf(int agent) const { return model_.rack == 0 ? agent : agent / model_.rack; }

  void Connect(int link) {
    future_.At(future_.now() + model_.latency, [this, link] {
      // Nothing is said over it before.
      links_[link].processor.Do(daemon_.Do(future_.now(), model_.handshake), {});
    });
  }

  JoinRequest RequestOf(int agent) const {
    JobSettings settings{.min_nodes = model_.agents, .max_nodes = model_.agents, .max_restarts = 1};
    // Nobody is lost here, however long it takes.
    settings.lease = hours(1);
    settings.keep_alive = kBeat;
    settings.join_timeout = hours(10);
    return {.run_id = "fleet",
            .settings = settings,
            .node = {.node_id = absl::StrCat("node-", agent),
                     .host = absl::StrCat("host", agent),
                     .address =
                         absl::StrCat("10.", agent >> 16, ".", agent >> 8 & 255, ".", agent & 255),
                     .master_port = 40'000,
                     .slots = 8},
            .session = absl::StrCat("session-", agent),
            .after = agents_[agent].round};
  }

  void SetOut(int agent) {
    future_.At(future_.now() + model_.latency, [this, agent] {
      Processor& door = model_.rack == 0 ? daemon_ : links_[LinkOf(agent)].processor;
      future_.At(door.Do(future_.now(), model_.handshake),
                 [this, agent] { Say(agent, RequestOf(agent)); });
    });
  }

  void Say(int agent, Event event) {
    if (model_.rack == 0) return Send({{agent, std::move(event)}});
    future_.At(future_.now() + model_.latency, [this, agent, event = std::move(event)]() mutable {
      Link& link = links_[LinkOf(agent)];
      const TimePoint read = link.processor.Do(future_.now(), model_.message);
      link.unsent.push_back({agent, std::move(event)});
      if (link.unsent.size() > 1) return;
      future_.At(read + model_.merge, [this, number = LinkOf(agent)] {
        Send(std::exchange(links_[number].unsent, {}));
      });
    });
  }

  // To the daemon.
  void Send(std::vector<Said> said) {
    future_.At(future_.now() + model_.latency, [this, said = std::move(said)] { Hear(said); });
  }

  // What follows from one message goes out as one message to each link that it concerns.
  void Hear(const std::vector<Said>& said) {
    daemon_.Do(future_.now(), model_.message + More(said.size()));
    std::map<int, std::vector<Told>> messages;
    for (const Said& each : said) Decide(each, messages);
    for (auto& [link, told] : messages) {
      const TimePoint written = daemon_.Do(future_.now(), model_.message + More(told.size()));
      future_.At(written + model_.latency,
                 [this, link, told = std::move(told)] { PassOn(link, told); });
    }
  }

  // The further items of a message.
  Duration More(std::size_t items) const { return model_.item * static_cast<int>(items - 1); }

  void Decide(const Said& said, std::map<int, std::vector<Told>>& messages) {
    const Duration before = ThreadTime();
    coordinator_.Hear(1 + said.agent, said.event, future_.now());
    const Outbox outbox = coordinator_.TakeOutbox();
    const Duration turn = ThreadTime() - before;
    figures_.longest_turn = std::max(figures_.longest_turn, turn);
    daemon_.Do(future_.now(), turn);
    for (const Outgoing& outgoing : outbox.directives) {
      // A beat's answer is part of the aggregator's next one.
      if (model_.rack != 0 && std::holds_alternative<Heard>(outgoing.directive())) continue;
      const int agent = static_cast<int>(outgoing.to) - 1;
      messages[LinkOf(agent)].push_back({agent, outgoing.directive()});
    }
  }

  void PassOn(int link, const std::vector<Told>& told) {
    for (const Told& each : told) {
      if (model_.rack == 0) {
        Obey(each.agent, each.directive);
        continue;
      }
      const TimePoint written = links_[link].processor.Do(future_.now(), model_.message);
      future_.At(written + model_.latency, [this, each] { Obey(each.agent, each.directive); });
    }
  }

  void Obey(int agent, const Directive& directive) {
    if (const auto* const welcome = std::get_if<Welcome>(&directive)) {
      incarnation_ = welcome->incarnation;
    } else if (const auto* const assignment = std::get_if<Assignment>(&directive)) {
      agents_[agent].round = assignment->round;
      ++assigned_;
      all_assigned_ = future_.now();
      Say(agent, WorkersStarted{assignment->id()});
    } else if (std::holds_alternative<Stop>(directive)) {
      Say(agent, RequestOf(agent));
    }
  }

  // Each agent says that it is alive, evenly apart from the others. An aggregator says once a
  // second who was silent, which is nobody.
  void Rest() {
    const Duration daemon_before = daemon_.busy();
    std::vector<Duration> before;
    for (const Link& link : links_) before.push_back(link.processor.busy());
    const TimePoint begun = future_.now();
    std::int64_t number = 0;
    for (int beat = 0; beat < kBeatsInPeace; ++beat) {
      ++number;
      for (int agent = 0; agent < model_.agents; ++agent) {
        const TimePoint when = begun + beat * kBeat + kBeat * agent / model_.agents;
        future_.At(when, [this, agent, number] {
          if (model_.rack == 0) return Send({{agent, KeepAlive{number}}});
          // Heard and answered on the spot.
          links_[LinkOf(agent)].processor.Do(future_.now(), 2 * model_.message);
        });
      }
      for (int link = 0; model_.rack != 0 && link < static_cast<int>(links_.size()); ++link) {
        const int size = static_cast<int>(links_.size());
        future_.At(begun + beat * kBeat + kBeat * link / size, [this, link, number] {
          links_[link].processor.Do(future_.now(), 2 * model_.message);
          // One message each way, and the decision for each of its agents.
          daemon_.Do(future_.now(), 2 * model_.message);
          const int first = link * model_.rack;
          std::map<int, std::vector<Told>> answers;
          for (int agent = first; agent < std::min(first + model_.rack, model_.agents); ++agent) {
            Decide({agent, KeepAlive{number}}, answers);
          }
        });
      }
    }
    future_.Run();
    const auto share = [](Duration busy) {
      return std::chrono::duration<double>(busy) / (kBeatsInPeace * kBeat);
    };
    figures_.peace_share = share(daemon_.busy() - daemon_before);
    for (std::size_t i = 0; model_.rack != 0 && i < links_.size(); ++i) {
      figures_.aggregator_peace_share =
          std::max(figures_.aggregator_peace_share, share(links_[i].processor.busy() - before[i]));
    }
  }

  const FleetModel model_;
  Future future_;
  Coordinator coordinator_{Coordinator::Options{}};
  Processor daemon_;
  std::vector<Link> links_;
  std::vector<Agent> agents_;
  Incarnation incarnation_ = 0;
  int assigned_ = 0;
  TimePoint all_assigned_ = kStart;
  FleetFigures figures_;
};

}  // namespace

FleetFigures Simulate(const FleetModel& model) {
  return Fleet(model).Run();
}

}  // namespace muster::rendezvous::bench
