// The messages on the simulated network: proto/rendezvous.proto and proto/store.proto as values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "rendezvous/core/values/messages.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

// Sent by the guard of a dead agent, over its own connection.
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
  // kWait: the longest wait; nothing: until it is cancelled.
  std::optional<Duration> wait_for;
};
// The client no longer wants an answer. May overtake the request that it cancels.
struct StoreCancel {
  std::uint64_t number = 0;
};
struct StoreReply {
  std::uint64_t number = 0;
  bool done = false;     // otherwise it was refused, and nothing changed
  bool unknown = false;  // or it is not known whether it was done
  std::string value;     // kAdd: the sum; kCompareSet: the value now; kGet, kWait: the value
  bool stored = false;
  // For the checks only: the life of the job in which it was done.
  Incarnation incarnation = 0;
};

using Upward = std::variant<Event, AgentIsDead, StoreRequest, StoreCancel>;
using Downward = std::variant<Directive, StoreReply>;

}  // namespace muster::rendezvous
