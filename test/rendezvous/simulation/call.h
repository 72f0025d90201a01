// A call to the Coordinator, made by the simulation and seen by the invariants.
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
  kAskToLeave,
  kLeave,
  kLost,
  kTick,
  kClose,
  kDrain,
};

struct Call {
  CallKind kind = CallKind::kTick;
  AgentId agent = 0;                     // 0 for the last three
  RoundNumber round = kNoRound;          // kStarted, kSucceeded, kFailed, kAskToLeave
  Incarnation incarnation = 0;           // for the same four: the life of the job
  int rank = -1;                         // kFailed: the worker
  const JoinRequest* request = nullptr;  // kJoin; owned by the caller, read during the call only
  // kTick: how long after its deadline it comes because the process was halted; zero without a
  // halt.
  Duration late{};
};

// "a7 failed round 3 rank 5"
std::string CallText(const Call& event);

}  // namespace muster::rendezvous
