// Which events are shown as moments, in which words, and which of them end a round.
#pragma once

#include <string>

#include "launcher/replay/timeline.h"

namespace muster::launcher {

// Whether something happened to a node or rank, beyond the steps that every round takes.
bool IsIncident(AgentEventKind kind);

// Whether it is a sign that the round it is about is over.
bool EndsRound(AgentEventKind kind);

// "rank 3 exited with code 1"; "node n-1 received SIGTERM".
std::string DescribeIncident(const LoggedEvent& event, const std::string& node);

inline bool IsEarlier(const Incident& one, const Incident& other) {
  return one.at < other.at;
}

}  // namespace muster::launcher
