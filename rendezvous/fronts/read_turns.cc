#include "rendezvous/fronts/read_turns.h"

#include <utility>

namespace muster::rendezvous {

ReadTurns::Turn::~Turn() {
  if (!alive_.over()) turns_.End(this);
}

std::unique_ptr<ReadTurns::Turn> ReadTurns::Ask(const Host& host, std::function<void()> begin,
                                                std::function<void()> too_slow) {
  std::unique_ptr<Turn> turn(new Turn(*this, host));
  turn->begin_ = std::move(begin);
  turn->too_slow_ = std::move(too_slow);
  std::list<Turn*>& line = hosts_[host].line;
  turn->place_ = line.insert(line.end(), turn.get());
  ++waiting_;
  GoOn();
  return turn;
}

void ReadTurns::End(Turn* turn) {
  const Turn::State before = std::exchange(turn->state_, Turn::State::kOver);
  if (before == Turn::State::kOver) return;
  const auto host = hosts_.find(turn->host_);
  if (before == Turn::State::kReads) {
    reading_.erase(turn->place_);
    --host->second.reading;
  } else {
    host->second.line.erase(turn->place_);
    --waiting_;
  }
  if (host->second.reading == 0 && host->second.line.empty()) hosts_.erase(host);
  GoOn();
}

void ReadTurns::GoOn() {
  while (waiting_ > 0 && reading_.size() < limits_.at_once) {
    // Whoever comes after the last one, all around.
    auto next = hosts_.upper_bound(last_);
    for (std::size_t passed = 0;; ++passed, ++next) {
      if (passed > hosts_.size()) return AwaitOverdue();
      if (next == hosts_.end()) next = hosts_.begin();
      if (!next->second.line.empty() && next->second.reading < limits_.of_host) break;
    }
    last_ = next->first;
    Turn* const turn = next->second.line.front();
    next->second.line.pop_front();
    --waiting_;
    ++next->second.reading;
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
