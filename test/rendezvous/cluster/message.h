// What goes over the simulated network: proto/rendezvous.proto and proto/store.proto as values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "rendezvous/core/directive.h"
#include "rendezvous/core/event.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// What the guard of a dead agent says, over a connection of its own.
struct AgentIsDead {
  SessionToken session;
};

enum class StoreOperation { kSet, kAdd, kCompareSet, kAppend, kGet, kWait };
struct StoreRequest {
  std::uint64_t number = 0;
  StoreOperation operation = StoreOperation::kGet;
  std::string run_id;
  std::string key;
  std::string expected;  // kCompareSet
  std::string value;
  // kWait: for how long at most; nothing: until it is cancelled.
  std::optional<Duration> wait_for;
};
// The client wants no answer any more. May overtake what it is about.
struct StoreCancel {
  std::uint64_t number = 0;
};
struct StoreReply {
  std::uint64_t number = 0;
  bool done = false;  // else it was refused, and nothing has changed
  std::string value;  // kAdd: the sum; kCompareSet: what is there now; kGet, kWait: what is there
  bool stored = false;
  // For the checks alone: which life of the job it was done in.
  Incarnation incarnation = 0;
};

using Upward = std::variant<Event, AgentIsDead, StoreRequest, StoreCancel>;
using Downward = std::variant<Directive, StoreReply>;

}  // namespace muster::rendezvous
