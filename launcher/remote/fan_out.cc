#include "launcher/remote/fan_out.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "base/text.h"

namespace muster::launcher {

using enum HostNews::What;

FanOut::Actions FanOut::Adopt(const std::vector<Charge>& charges, Time now) {
  Actions actions;
  if (stopped_) return actions;
  for (const Charge& charge : charges) {
    const auto [entry, is_new] = entries_.emplace(
        charge.host,
        Entry{.failures = charge.failures, .told_unreachable = charge.told_unreachable});
    if (!is_new) continue;
    ready_.insert(charge.host);
    if (options_.limit) entry->second.give_up_at = now + *options_.limit;
  }
  Place(now, actions);
  return actions;
}

FanOut::Actions FanOut::OnAnswer(LinkId id, const std::string& endpoint, Time now) {
  Actions actions;
  const auto found = links_.find(id);
  if (found == links_.end() || found->second.answered) return actions;
  Link& link = found->second;
  link.answered = true;
  link.answered_at = now;
  Entry& entry = entries_.at(link.host);
  ClearTimer(link.host);
  entry.state = State::kUp;
  entry.give_up_at.reset();
  entry.told_unreachable = false;
  actions.emplace_back(HostNews{.host = link.host, .what = kAnswered, .endpoint = endpoint});
  const std::set<HostIndex> promised = std::exchange(link.charges, {});
  if (!promised.empty()) HandTo(id, promised, actions);
  Place(now, actions);
  return actions;
}

FanOut::Actions FanOut::OnLinkEnd(LinkId id, const std::string& reason, Time now) {
  Actions actions;
  const auto found = links_.find(id);
  if (found == links_.end()) return actions;
  const Link link = std::move(found->second);
  links_.erase(found);
  if (!link.answered) {
    ClearTimer(link.host);
    ready_.insert(link.charges.begin(), link.charges.end());
    Fail(link.host, reason, now, actions);
    Place(now, actions);
    return actions;
  }
  const bool was_steady = now - link.answered_at >= options_.steady;
  for (const HostIndex host : link.charges) {
    Lose(host, absl::StrCat("the host that started it was lost: ", reason), was_steady, now,
         actions);
  }
  Lose(link.host, reason, was_steady, now, actions);
  Place(now, actions);
  return actions;
}

FanOut::Actions FanOut::OnNews(LinkId id, const HostNews& news, Time now) {
  Actions actions;
  const auto link = links_.find(id);
  const auto entry = entries_.find(news.host);
  if (link == links_.end() || entry == entries_.end() || entry->second.link != id) return actions;
  const bool is_own = entry->second.state == State::kUp;
  if (!is_own && entry->second.state != State::kHanded) return actions;
  // About itself a host reports only its end; everything else is visible from here.
  if (is_own && news.what != kEnded) return actions;
  const bool is_final = news.what == kEnded || (news.what == kUnreachable && !options_.retry);
  if (is_final) entry->second.state = news.what == kEnded ? State::kEnded : State::kGivenUp;
  if (is_final && !is_own) {
    link->second.charges.erase(news.host);
    entry->second.link = 0;
  }
  if (news.what == kUnreachable) entry->second.told_unreachable = true;
  if (news.what == kAnswered) entry->second.told_unreachable = false;
  actions.emplace_back(news);
  Place(now, actions);
  return actions;
}

FanOut::Actions FanOut::OnTime(Time now) {
  Actions actions;
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const HostIndex host = timers_.begin()->second;
    timers_.erase(timers_.begin());
    Entry& entry = entries_.at(host);
    if (entry.state != State::kStarting) {
      entry.state = State::kWaiting;
      ready_.insert(host);
      continue;
    }
    const auto link = links_.find(entry.link);
    const std::set<HostIndex> promised = std::exchange(link->second.charges, {});
    ready_.insert(promised.begin(), promised.end());
    const bool is_half = now < link->second.answer_by;
    if (is_half && HasPlaces(entry.failures)) {
      SetTimer(host, link->second.answer_by);
      continue;
    }
    const Duration waited = is_half ? link->second.half : options_.answer_timeout;
    actions.emplace_back(Close{link->first});
    links_.erase(link);
    Fail(host, absl::StrCat("it has not answered within ", base::Seconds(waited)), now, actions);
  }
  Place(now, actions);
  return actions;
}

FanOut::Actions FanOut::Stop() {
  Actions actions;
  stopped_ = true;
  ready_.clear();
  timers_.clear();
  for (auto link = links_.begin(); link != links_.end();) {
    if (link->second.answered) {
      ++link;
      continue;
    }
    actions.emplace_back(Close{link->first});
    link = links_.erase(link);
  }
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const State state = entry->second.state;
    const bool is_up = state == State::kUp || state == State::kHanded || state == State::kEnded;
    entry = is_up ? std::next(entry) : entries_.erase(entry);
  }
  return actions;
}

std::optional<FanOut::Time> FanOut::next_deadline() const {
  if (timers_.empty()) return std::nullopt;
  return timers_.begin()->first;
}

void FanOut::SetTimer(HostIndex host, Time deadline) {
  entries_.at(host).deadline = deadline;
  timers_.emplace(deadline, host);
}

void FanOut::ClearTimer(HostIndex host) {
  timers_.erase({entries_.at(host).deadline, host});
}

std::size_t FanOut::FreeLinks() const {
  const auto most = static_cast<std::size_t>(std::max(options_.fanout, 1));
  return most > links_.size() ? most - links_.size() : 0;
}

void FanOut::Place(Time now, Actions& actions) {
  if (stopped_) return;
  GiveUpUntried(now, actions);
  if (ready_.empty()) return;
  if (const std::size_t free = FreeLinks(); free > 0) {
    // One group per free link, of nearly equal size, keeps the tree flat.
    const auto groups = Groups(std::min(free, ready_.size()));
    ready_.clear();
    for (const std::vector<HostIndex>& group : groups) Lead(group, now, actions);
    return;
  }
  // Only hosts that are up can take them; if none is up, the first one to answer will.
  const auto least =
      std::min_element(links_.begin(), links_.end(), [](const auto& one, const auto& other) {
        const auto load = [](const Link& link) {
          return std::pair(!link.answered, link.charges.size());
        };
        return load(one.second) < load(other.second);
      });
  if (!least->second.answered) return;
  HandTo(least->first, std::exchange(ready_, {}), actions);
}

void FanOut::Lead(const std::vector<HostIndex>& group, Time now, Actions& actions) {
  const LinkId id = ++last_link_;
  const HostIndex leader = group.front();
  Entry& entry = entries_.at(leader);
  entry.state = State::kStarting;
  entry.link = id;
  if (options_.limit && !entry.give_up_at) entry.give_up_at = now + *options_.limit;
  Link link{.host = leader, .charges = {group.begin() + 1, group.end()}};
  link.answer_by = now + options_.answer_timeout;
  if (entry.give_up_at) link.answer_by = std::min(link.answer_by, *entry.give_up_at);
  link.half = std::chrono::duration_cast<Duration>((link.answer_by - now) / 2);
  const bool is_waited_for = options_.limit && !link.charges.empty();
  SetTimer(leader, is_waited_for ? now + link.half : link.answer_by);
  links_.emplace(id, std::move(link));
  actions.emplace_back(Open{id, leader});
}

std::vector<std::vector<HostIndex>> FanOut::Groups(std::size_t count) const {
  std::vector<HostIndex> hosts(ready_.begin(), ready_.end());
  std::vector<std::vector<HostIndex>> groups(count);
  if (!options_.limit) {
    // Neighbours stay together.
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      groups[((i + 1) * count - 1) / hosts.size()].push_back(hosts[i]);
    }
    return groups;
  }
  // Hosts with the fewest attempts lead, as there may be no time for the others.
  std::stable_sort(hosts.begin(), hosts.end(), [this](HostIndex one, HostIndex other) {
    return entries_.at(one).failures < entries_.at(other).failures;
  });
  for (std::size_t i = 0; i < hosts.size(); ++i) groups[i % count].push_back(hosts[i]);
  return groups;
}

void FanOut::GiveUpUntried(Time now, Actions& actions) {
  if (!options_.limit) return;
  for (auto host = ready_.begin(); host != ready_.end();) {
    Entry& entry = entries_.at(*host);
    if (!entry.give_up_at || now < *entry.give_up_at) {
      ++host;
      continue;
    }
    entry.state = State::kGivenUp;
    actions.emplace_back(HostNews{
        .host = *host,
        .what = kUnreachable,
        .reason = entry.failures > 0
                      ? absl::StrCat("it has not answered within ", base::Seconds(*options_.limit))
                      : absl::StrCat("it was not tried within ", base::Seconds(*options_.limit),
                                     ", as hosts before it did not answer")});
    host = ready_.erase(host);
  }
}

bool FanOut::HasPlaces(int failures) const {
  const auto waiting = std::count_if(ready_.begin(), ready_.end(), [&](HostIndex host) {
    return entries_.at(host).failures <= failures;
  });
  return static_cast<std::size_t>(waiting) <= FreeLinks() ||
         std::any_of(links_.begin(), links_.end(),
                     [](const auto& link) { return link.second.answered; });
}

void FanOut::HandTo(LinkId id, const std::set<HostIndex>& hosts, Actions& actions) {
  Hand hand{.link = id, .charges = {}};
  for (const HostIndex host : hosts) {
    Entry& entry = entries_.at(host);
    entry.state = State::kHanded;
    entry.link = id;
    hand.charges.push_back({host, entry.failures, entry.told_unreachable});
  }
  links_.at(id).charges.insert(hosts.begin(), hosts.end());
  actions.emplace_back(std::move(hand));
}

void FanOut::Fail(HostIndex host, const std::string& reason, Time now, Actions& actions) {
  Entry& entry = entries_.at(host);
  entry.link = 0;
  ++entry.failures;
  const Time again = now + options_.pause * (1 << std::min(entry.failures - 1, 10));
  const bool has_time = !entry.give_up_at || again < *entry.give_up_at;
  if (entry.failures < options_.attempts && has_time) {
    entry.state = State::kWaiting;
    SetTimer(host, again);
    actions.emplace_back(HostNews{.host = host, .what = kNotYet, .reason = reason});
    return;
  }
  if (!entry.told_unreachable) {
    actions.emplace_back(HostNews{.host = host, .what = kUnreachable, .reason = reason});
  }
  entry.told_unreachable = true;
  entry.give_up_at.reset();
  entry.state = options_.retry ? State::kWaiting : State::kGivenUp;
  if (options_.retry) SetTimer(host, now + *options_.retry);
}

void FanOut::Lose(HostIndex host, const std::string& reason, bool was_steady, Time now,
                  Actions& actions) {
  Entry& entry = entries_.at(host);
  entry.link = 0;
  if (entry.state == State::kEnded) return;
  if (stopped_) {
    entries_.erase(host);
    actions.emplace_back(HostNews{.host = host, .what = kLost, .reason = reason});
    return;
  }
  entry.failures = was_steady ? 1 : entry.failures + 1;
  if (!entry.told_unreachable) {
    actions.emplace_back(HostNews{.host = host, .what = kLost, .reason = reason});
  }
  if (entry.failures >= options_.attempts && !options_.retry) {
    entry.state = State::kGivenUp;
    actions.emplace_back(HostNews{.host = host, .what = kUnreachable, .reason = reason});
    return;
  }
  entry.state = State::kWaiting;
  SetTimer(host, now + (entry.failures < options_.attempts ? options_.settle : *options_.retry));
}

}  // namespace muster::launcher
