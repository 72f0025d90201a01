// One call of the Coordinator, as the simulation makes it and the invariants see it.
#pragma once

#include <string>

#include "rendezvous/core/types.h"

namespace muster::rendezvous {

enum class CallKind {
  kJoin,
  kKeepAlive,
  kStarted,
  kSucceeded,
  kFailed,
  kLeaving,
  kLeave,
  kLost,
  kTick,
  kClose,
  kDrain,
};

struct Call {
  CallKind kind = CallKind::kTick;
  AgentId agent = 0;                     // 0 for the last three
  RoundNumber round = kNoRound;          // kStarted, kSucceeded, kFailed
  Incarnation incarnation = 0;           // the same, and of which life of the job
  int rank = -1;                         // kFailed: the worker
  const JoinRequest* request = nullptr;  // kJoin; owned by the caller, read during the call only
  // kTick: how far beyond the deadline a halt of the process has moved it; zero without a halt.
  Duration late{};
};

// "a7 failed round 3 rank 5"
std::string CallText(const Call& event);

}  // namespace muster::rendezvous
