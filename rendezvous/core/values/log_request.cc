#include "rendezvous/core/values/log_request.h"

#include "rendezvous/core/values/limits.h"

namespace muster::rendezvous {

bool ReadSoFar::Hear(const LogText& text) {
  if (!text.offset) {
    has_offsets_ = false;
    return true;
  }
  next_[{text.rank, text.stream}] = *text.offset + text.bytes.size();
  is_too_much_ = next_.size() > limits::kLogPositions.most;
  return true;
}

bool ReadSoFar::Hear(const LogNotice& notice) {
  is_incomplete_ = is_incomplete_ || notice.is_loss;
  return said_.insert(notice.sentence).second || notice.is_loss;
}

bool ReadSoFar::Hear(const LogRound& round) {
  const bool is_first = !round_.has_value();
  if (round_ == round.round && incarnation_ == round.incarnation) return false;
  round_ = round.round;
  incarnation_ = round.incarnation;
  next_.clear();
  said_.clear();
  is_too_much_ = false;
  if (is_first) return true;
  request_.extent.since.reset();
  request_.extent.tail.reset();
  return true;
}

LogRequest ReadSoFar::Rest(Duration passed) const {
  LogRequest rest = request_;
  rest.previous = false;
  rest.round = round_;
  rest.incarnation = incarnation_;
  if (rest.extent.since) *rest.extent.since += passed;
  for (const auto& [whose, offset] : next_) {
    rest.extent.from.push_back({.rank = whose.first, .stream = whose.second, .offset = offset});
  }
  return rest;
}

}  // namespace muster::rendezvous
