#include "rendezvous/fronts/read_turns.h"

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

ReadTurns::Turn::~Turn() {
  if (!alive_.over()) turns_.End(this);
}

std::unique_ptr<ReadTurns::Turn> ReadTurns::Ask(const std::string& tenant, const Host& host,
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

void ReadTurns::End(Turn* turn) {
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

ReadTurns::Turn* ReadTurns::Next() {
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

void ReadTurns::GoOn() {
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

void ReadTurns::AwaitOverdue() {
  if (awaits_overdue_ || waiting_ == 0 || reading_.empty()) return;
  awaits_overdue_ = true;
  overdue_.expires_at(reading_.front()->since_ + limits_.patience);
  overdue_.async_wait(lifetime_.Guard([this](const boost::system::error_code&) {
    awaits_overdue_ = false;
    if (waiting_ == 0 || reading_.empty()) return;
    Turn* const oldest = reading_.front();
    if (Clock::now() - oldest->since_ >= limits_.patience) {
      const std::function<void()> too_slow = std::move(oldest->too_slow_);
      End(oldest);
      too_slow();
    }
    AwaitOverdue();
  }));
}

}  // namespace muster::rendezvous
