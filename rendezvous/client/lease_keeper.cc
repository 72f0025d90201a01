#include "rendezvous/client/agent_session.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace muster::rendezvous {

void LeaseKeeper::OnWelcome(Duration lease, bool durable, TimePoint sent) {
  lease_ = lease;
  durable_ = durable;
  Answered(sent);
}

std::int64_t LeaseKeeper::Beat(TimePoint now) {
  MUSTER_CHECK(unanswered_.empty() || unanswered_.rbegin()->second <= now);
  unanswered_[++last_beat_] = now;
  return last_beat_;
}

void LeaseKeeper::OnHeard(std::int64_t number) {
  last_heard_ = std::max(last_heard_, number);
  const auto beat = unanswered_.find(number);
  if (beat == unanswered_.end()) return;
  Answered(beat->second);
  // They come in order: those before it have been heard, too.
  unanswered_.erase(unanswered_.begin(), std::next(beat));
}

void LeaseKeeper::OnNobodyDecides(TimePoint began) {
  const std::optional<TimePoint> end = deadline();
  if (durable_ && end && began < *end) Answered(began);
}

void LeaseKeeper::Answered(TimePoint sent) {
  answered_ = std::max(answered_.value_or(sent), sent);
}

std::optional<TimePoint> LeaseKeeper::deadline() const {
  if (!answered_ || lease_ == Duration::zero()) return std::nullopt;
  return *answered_ + SelfFenceAfter(lease_);
}

std::optional<TimePoint> LeaseKeeper::last_deadline() const {
  const std::optional<TimePoint> first = deadline();
  if (!first) return std::nullopt;
  return *first + lease_ / 20;
}

std::optional<TimePoint> LeaseKeeper::doubtful_from() const {
  if (unanswered_.empty() || lease_ == Duration::zero()) return std::nullopt;
  return unanswered_.begin()->second + lease_ / 2;
}

}  // namespace muster::rendezvous
