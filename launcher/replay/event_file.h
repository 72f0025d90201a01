// An event log as it was read: its events, and what is to be said about it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/report/agent_event.h"

namespace muster::launcher {

// A line of an event log (docs/event_log.md).
struct LoggedEvent {
  AgentEventKind kind = AgentEventKind::kJoining;
  // By the node's wall clock, since 1970, and by its CLOCK_MONOTONIC.
  std::chrono::nanoseconds wall{0};
  std::chrono::nanoseconds monotonic{0};
  rendezvous::RoundNumber round = rendezvous::kNoRound;
  int rank = -1;
  std::string cause;
  std::optional<EventPlace> place;  // of kAssigned
  int workers = 0;                  // of kLogOpened
};

// The events of one agent in one file, in the order of their lines.
struct NodeEvents {
  std::string job;
  std::string node;
  std::vector<LoggedEvent> events;
};

struct EventFile {
  std::vector<NodeEvents> nodes;
  // Sentences about lines that could not be used, each with the file's name.
  std::vector<std::string> notes;
};

// Reads the text of the log `name`. What cannot be read is left out and told in the notes: a last
// line that was torn off, lines that are no events, events that this version does not know. The
// error, one sentence: the log has a newer version, or there is no event in it.
absl::StatusOr<EventFile> ReadEvents(const std::string& name, absl::string_view text);

}  // namespace muster::launcher
