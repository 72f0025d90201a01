// How far a reader of logs has come: what he has been told, and what he asks for after he has lost
// his daemon.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "rendezvous/core/log_request.h"

namespace muster::rendezvous {

// A value: the round that is read, and of each stream in it the first byte that has not come.
class ReadSoFar {
 public:
  explicit ReadSoFar(LogRequest request) : request_(std::move(request)) {}

  // This has come. False: he knows it already, from before he lost his daemon.
  bool Take(const LogPart& part);

  // Whether another daemon can be asked for exactly what is left: this one and the agents are new
  // enough to have said where they were, and a round has begun.
  bool can_go_on() const { return incarnation_ != 0 && has_offsets_ && !is_too_much_; }

  // What to ask for next. `passed` since the first request was made.
  LogRequest Rest(Duration passed) const;

  // Something was missing, as a notice has said.
  bool is_incomplete() const { return is_incomplete_; }

 private:
  bool Hear(const LogText& text);
  bool Hear(const LogNotice& notice);
  bool Hear(const LogRound& round);

  // The first one; later rounds are wanted as a whole.
  LogRequest request_;
  std::optional<RoundNumber> round_;
  Incarnation incarnation_ = 0;
  std::map<std::pair<int, LogStream>, std::uint64_t> next_;
  // What was said of this round, and is said again by each agent that is asked again.
  std::set<std::string> said_;
  bool has_offsets_ = true;
  bool is_too_much_ = false;
  bool is_incomplete_ = false;
};

}  // namespace muster::rendezvous
