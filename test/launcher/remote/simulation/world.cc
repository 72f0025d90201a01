#include "test/launcher/remote/simulation/world.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace muster::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using enum HostNews::What;

}  // namespace

World::World(const SimulationOptions& options)
    : options_(options), random_(options.seed), trace_(options.trace) {
  fan_out_options_.fanout = static_cast<int>(random_.OneOf(std::vector<int>{2, 4, 16, 16, 64}));
  fan_out_options_.answer_timeout = seconds(60);
  if (random_.Chance(1, 2)) fan_out_options_.retry = seconds(30);
  faults_in_1000_ = static_cast<int>(random_.OneOf(std::vector<int>{0, 5, 30, 100}));
  longest_silence_ = random_.Chance(1, 2) ? seconds(2) : seconds(30);
  hosts_.resize(static_cast<std::size_t>(options.hosts));
  const int dead_in_1000 = static_cast<int>(random_.OneOf(std::vector<int>{0, 1, 20, 200}));
  for (Host& host : hosts_) host.dead = random_.Chance(dead_in_1000, 1000);
  root_ = std::make_shared<Process>(-1, fan_out_options_);
}

void World::After(Duration delay, std::function<void()> what) {
  events_.push({now_ + delay, ++numbers_, std::move(what)});
}

void World::RunUntil(Time end) {
  while (!events_.empty() && events_.top().at <= end && !Failed()) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    ++result_.events;
    event.what();
  }
  now_ = std::max(now_, end);
}

void World::Violated(const std::string& what) {
  if (Failed()) return;
  result_.failure =
      absl::StrCat("seed ", options_.seed, ": at ", (now_.time_since_epoch() / milliseconds(1)),
                   " ms: ", what, "\n", trace_.Tail());
}

void World::Note(const std::string& line) {
  trace_.Add(absl::StrCat(now_.time_since_epoch() / milliseconds(1), " ", line));
}

void World::Do(const ProcessPtr& process, const FanOut::Actions& actions) {
  for (const FanOut::Action& action : actions) {
    std::visit(
        [&](const auto& one) {
          using Action = std::decay_t<decltype(one)>;
          if constexpr (std::is_same_v<Action, FanOut::Open>) {
            OpenLink(process, one);
          } else if constexpr (std::is_same_v<Action, FanOut::Hand>) {
            Note(absl::StrCat(process->host, " hands ", one.charges.size(), " to link ", one.link));
            Send(process->links.at(one.link), true, [this, one](const ProcessPtr& child) {
              Do(child, child->fan_out.Adopt(one.charges, now_));
            });
          } else if constexpr (std::is_same_v<Action, FanOut::Close>) {
            // CloseLink removes it from the map, so pass a copy rather than a reference into the
            // map.
            CloseLink(LinkPtr(process->links.at(one.link)));
          } else {
            TellUp(process, one);
          }
        },
        action);
  }
  CheckLinks(process);
  Arm(process);
}

void World::Arm(const ProcessPtr& process) {
  const auto deadline = process->fan_out.next_deadline();
  if (!deadline || process->timer == deadline) return;
  process->timer = deadline;
  After(std::max(Duration(0), *deadline - now_),
        [this, weak = std::weak_ptr<Process>(process), at = *deadline] {
          const ProcessPtr process = weak.lock();
          if (process == nullptr || process->ending || process->timer != at) return;
          process->timer.reset();
          Do(process, process->fan_out.OnTime(now_));
        });
}

void World::OpenLink(const ProcessPtr& process, const FanOut::Open& open) {
  Note(absl::StrCat(process->host, " opens link ", open.link, " to ", open.host));
  Host& host = hosts_[static_cast<std::size_t>(open.host)];
  std::erase_if(host.attempts, [](const LinkPtr& link) { return link->over; });
  if (IsConnected(process)) {
    for (const LinkPtr& other : host.attempts) {
      const ProcessPtr parent = other->parent.lock();
      if (parent != nullptr && IsConnected(parent)) {
        Violated(absl::StrCat("host ", open.host, " is started by ", process->host, " and by ",
                              parent->host));
      }
    }
    if (host.ends_told > 0) Violated(absl::StrCat("host ", open.host, " is started again"));
  }
  const auto link = std::make_shared<Link>();
  link->parent = process;
  link->id = open.link;
  link->host = open.host;
  process->links[open.link] = link;
  host.attempts.push_back(link);
  Attempt(link);
}

void World::Attempt(const LinkPtr& link) {
  const Host& host = hosts_[static_cast<std::size_t>(link->host)];
  const auto goes_wrong = [this] { return faulty_ && random_.Chance(faults_in_1000_, 1000); };
  if (goes_wrong() || (host.dead && random_.Chance(1, 3))) {
    return Happened("an attempt is never answered");
  }
  if (host.dead || goes_wrong()) {
    Happened("an attempt is refused");
    return TellEnd(link, "Connection refused", random_.Between(milliseconds(1), seconds(3)));
  }
  const bool is_slow = goes_wrong();
  if (is_slow) Happened("an attempt is slow");
  const bool dies = goes_wrong();
  After(is_slow ? random_.Between(seconds(1), seconds(90))
                : random_.Between(milliseconds(5), milliseconds(800)),
        [this, link, dies] { StartProcess(link, dies); });
}

void World::StartProcess(const LinkPtr& link, bool dies_at_once) {
  Host& host = hosts_[static_cast<std::size_t>(link->host)];
  if (host.occupant.lock() != nullptr) {
    Happened("a host is still busy");
    return TellEnd(link, "still ending", milliseconds(5));
  }
  const auto process = std::make_shared<Process>(link->host, fan_out_options_);
  process->uplink = link;
  link->child = process;
  host.occupant = process;
  running_[link->host].push_back(process);
  Note(absl::StrCat(link->host, " runs"));
  if (link->over || link->parent.lock() == nullptr || link->parent.lock()->ending) {
    Happened("a host starts for somebody who is gone");
    After(random_.Between(milliseconds(1), longest_silence_),
          [this, process] { End(process, false); });
    return;
  }
  if (dies_at_once) {
    Happened("a host dies while it starts");
    return End(process, true);
  }
  const std::string endpoint = absl::StrCat("10.0.0.", link->host, ":1");
  Send(link, false, [this, link, endpoint](const ProcessPtr& parent) {
    Do(parent, parent->fan_out.OnAnswer(link->id, endpoint, now_));
  });
}

void World::CloseLink(const LinkPtr& link) {
  if (std::exchange(link->over, true)) return;
  if (const ProcessPtr parent = link->parent.lock()) parent->links.erase(link->id);
  const ProcessPtr child = link->child.lock();
  if (child == nullptr) return;
  After(random_.Between(milliseconds(1), link->cut ? longest_silence_ : seconds(1)),
        [this, child] { End(child, false); });
}

void World::TellEnd(const LinkPtr& link, const std::string& reason, Duration delay) {
  After(delay, [this, link, reason] {
    const ProcessPtr parent = link->parent.lock();
    if (std::exchange(link->over, true) || parent == nullptr || parent->ending) return;
    parent->links.erase(link->id);
    Note(absl::StrCat(parent->host, " hears that link ", link->id, " has ended"));
    Do(parent, parent->fan_out.OnLinkEnd(link->id, reason, now_));
  });
}

void World::Send(const LinkPtr& link, bool down, std::function<void(const ProcessPtr&)> deliver) {
  Time& last = down ? link->down : link->up;
  last =
      std::max(last + milliseconds(1), now_ + random_.Between(milliseconds(1), milliseconds(20)));
  After(last - now_, [link, down, deliver = std::move(deliver)] {
    const ProcessPtr to = down ? link->child.lock() : link->parent.lock();
    if (link->cut || link->over || to == nullptr || to->ending) return;
    deliver(to);
  });
}

void World::TellUp(const ProcessPtr& process, const HostNews& news) {
  if (process == root_) return TellRoot(news);
  const LinkPtr& link = process->uplink;
  Send(link, false, [this, link, news](const ProcessPtr& parent) {
    Do(parent, parent->fan_out.OnNews(link->id, news, now_));
  });
}

void World::TellRoot(const HostNews& news) {
  Host& host = hosts_[static_cast<std::size_t>(news.host)];
  Note(absl::StrCat("root is told ", static_cast<int>(news.what), " of ", news.host, " ",
                    news.reason));
  if (news.what == kUnreachable) {
    Happened("the root is told that a host is unreachable");
    if (host.told && host.told->what == kUnreachable) {
      Violated(absl::StrCat("host ", news.host, " is said to be unreachable twice"));
    }
  }
  if (news.what == kLost) Happened("the root is told that a host is lost");
  if (news.what == kEnded && ++host.ends_told > 1) {
    Violated(absl::StrCat("host ", news.host, " is said to have ended twice"));
  }
  // A further attempt after it was given up is not reported.
  if (news.what == kNotYet && host.told && host.told->what == kUnreachable) return;
  host.told = news;
}

void World::End(const ProcessPtr& process, bool at_once) {
  if (std::exchange(process->ending, true)) return;
  Note(absl::StrCat(process->host, " ends"));
  TellEnd(process->uplink, "ended", random_.Between(milliseconds(1), seconds(1)));
  // Its children notice that it is gone.
  for (const auto& [id, link] : std::exchange(process->links, {})) {
    link->over = true;
    if (const ProcessPtr child = link->child.lock()) {
      After(random_.Between(milliseconds(1), longest_silence_),
            [this, child] { End(child, false); });
    }
  }
  // Workers may have a grace period.
  After(at_once ? milliseconds(0) : random_.Between(milliseconds(0), seconds(5)),
        [this, process] { std::erase(running_[process->host], process); });
}

World::ProcessPtr World::SomeProcess() {
  for (int i = 0; i < 20; ++i) {
    const auto& at = running_[static_cast<HostIndex>(random_.Below(options_.hosts))];
    if (!at.empty() && !at.front()->ending) return at.front();
  }
  return nullptr;
}

void World::SomethingBreaks() {
  const ProcessPtr process = SomeProcess();
  if (process == nullptr) return;
  if (random_.Chance(1, 2)) {
    Happened("a process is killed");
    return End(process, true);
  }
  Happened("a link breaks");
  Note(absl::StrCat("the link to ", process->host, " breaks"));
  process->uplink->cut = true;
  TellEnd(process->uplink, "broken", random_.Between(milliseconds(1), longest_silence_));
  After(random_.Between(milliseconds(1), longest_silence_),
        [this, process] { End(process, false); });
}

bool World::IsConnected(const ProcessPtr& process) const {
  for (ProcessPtr at = process; at != root_; at = at->uplink->parent.lock()) {
    if (at == nullptr || at->ending || at->uplink->cut || at->uplink->over) return false;
  }
  return true;
}

int World::Depth(const ProcessPtr& process) const {
  int depth = 0;
  for (ProcessPtr at = process; at != nullptr && at != root_; at = at->uplink->parent.lock())
    ++depth;
  return depth;
}

}  // namespace muster::launcher
