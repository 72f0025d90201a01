#include "rendezvous/fronts/flow_control.h"

#include <utility>

namespace muster::rendezvous {
namespace {

// The first behind `last`, all around, for whom `may` holds; `end` if there is none.
template <typename Map, typename May>
typename Map::iterator NextAfter(Map& map, const typename Map::key_type& last, May may) {
  auto next = map.upper_bound(last);
  for (std::size_t passed = 0; passed < map.size(); ++passed, ++next) {
    if (next == map.end()) next = map.begin();
    if (may(*next)) return next;
  }
  return map.end();
}

}  // namespace

ReadScheduler::Turn::~Turn() {
  if (!alive_.over()) turns_.End(this);
}

std::unique_ptr<ReadScheduler::Turn> ReadScheduler::Ask(const std::string& tenant, const Host& host,
                                                        std::function<void()> begin,
                                                        std::function<void()> too_slow) {
  std::unique_ptr<Turn> turn(new Turn(*this, tenant, host));
  turn->begin_ = std::move(begin);
  turn->too_slow_ = std::move(too_slow);
  std::list<Turn*>& line = tenants_[tenant].hosts[host].line;
  turn->place_ = line.insert(line.end(), turn.get());
  ++waiting_;
  GoOn();
  return turn;
}

void ReadScheduler::End(Turn* turn) {
  const Turn::State before = std::exchange(turn->state_, Turn::State::kOver);
  if (before == Turn::State::kOver) return;
  const auto tenant = tenants_.find(turn->tenant_);
  const auto host = tenant->second.hosts.find(turn->host_);
  if (before == Turn::State::kReads) {
    reading_.erase(turn->place_);
    --host->second.reading;
    --tenant->second.reading;
  } else {
    host->second.line.erase(turn->place_);
    --waiting_;
  }
  if (host->second.reading == 0 && host->second.line.empty()) tenant->second.hosts.erase(host);
  if (tenant->second.hosts.empty()) tenants_.erase(tenant);
  GoOn();
}

ReadScheduler::Turn* ReadScheduler::Next() {
  const auto may_read = [this](const auto& host) {
    return !host.second.line.empty() && host.second.reading < limits_.of_host;
  };
  const auto tenant = NextAfter(tenants_, last_, [&](auto& each) {
    OfTenant& of = each.second;
    return (each.first.empty() || of.reading < limits_.of_tenant) &&
           NextAfter(of.hosts, of.last, may_read) != of.hosts.end();
  });
  if (tenant == tenants_.end()) return nullptr;
  OfTenant& of = tenant->second;
  const auto host = NextAfter(of.hosts, of.last, may_read);
  last_ = tenant->first;
  of.last = host->first;
  Turn* const turn = host->second.line.front();
  host->second.line.pop_front();
  --waiting_;
  ++host->second.reading;
  ++of.reading;
  return turn;
}

void ReadScheduler::GoOn() {
  while (waiting_ > 0 && reading_.size() < limits_.at_once) {
    Turn* const turn = Next();
    if (turn == nullptr) break;
    turn->state_ = Turn::State::kReads;
    turn->since_ = Clock::now();
    turn->place_ = reading_.insert(reading_.end(), turn);
    turn->begin_();
  }
  AwaitOverdue();
}

void ReadScheduler::AwaitOverdue() {
  if (overdue_.waits() || waiting_ == 0 || reading_.empty()) return;
  overdue_.At(reading_.front()->since_ + limits_.patience, [this] {
    if (waiting_ == 0 || reading_.empty()) return;
    Turn* const oldest = reading_.front();
    if (Clock::now() - oldest->since_ >= limits_.patience) {
      const std::function<void()> too_slow = std::move(oldest->too_slow_);
      End(oldest);
      too_slow();
    }
    AwaitOverdue();
  });
}

UnreadResponses::Id UnreadResponses::Add(const Peer& peer, std::size_t bytes) {
  const Id id = next_++;
  answers_.emplace(id, Answer{.peer = peer, .bytes = bytes, .since = Clock::now()});
  bytes_ += bytes;
  // Those of connections that were ended count until gRPC has let go of them, which it soon does.
  std::size_t left = bytes_;
  for (auto& [oldest, answer] : answers_) {
    if (left <= limits_.bytes || oldest == id) break;
    left -= answer.bytes;
    Drop(answer, dropped_for_bytes_);
  }
  AwaitOverdue();
  return id;
}

void UnreadResponses::Taken(Id id) {
  const auto answer = answers_.find(id);
  if (answer == answers_.end()) return;
  bytes_ -= answer->second.bytes;
  answers_.erase(answer);
}

void UnreadResponses::Drop(Answer& answer, std::uint64_t& count) {
  if (std::exchange(answer.dropped, true)) return;
  ++count;
  drop_(answer.peer);
}

void UnreadResponses::AwaitOverdue() {
  if (overdue_.waits() || answers_.size() <= limits_.answers) return;
  overdue_.After(limits_.patience, [this] {
    DropOverdue();
    AwaitOverdue();
  });
}

void UnreadResponses::DropOverdue() {
  const Clock::time_point before = Clock::now() - limits_.patience;
  std::size_t left = answers_.size();
  for (auto& [id, answer] : answers_) {
    if (left <= limits_.answers || answer.since > before) break;
    --left;
    Drop(answer, dropped_for_number_);
  }
}

}  // namespace muster::rendezvous
