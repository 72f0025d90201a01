// Reads event logs.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "base/json.h"
#include "launcher/replay/agent_event.h"

namespace muster::launcher {

// A line of an event log (docs/event_log.md).
struct LoggedEvent {
  AgentEventKind kind = AgentEventKind::kJoining;
  // The node's wall clock, since 1970, and its CLOCK_MONOTONIC.
  std::chrono::nanoseconds wall{0};
  std::chrono::nanoseconds monotonic{0};
  rendezvous::RoundNumber round = rendezvous::kNoRound;
  int rank = -1;
  std::string cause;
  std::optional<EventPlace> place;  // for kAssigned
  int workers = 0;                  // for kLogOpened
};

// The events of one agent in one file, in file order.
struct NodeEvents {
  std::string job;
  std::string node;
  std::vector<LoggedEvent> events;
};

struct EventFile {
  std::vector<NodeEvents> nodes;
  // Sentences about unusable lines, each with the file's name.
  std::vector<std::string> notes;
};

// Parses `text`, the log file `name`. Skips what it cannot read and says so in the notes: a
// truncated last line, lines that are not events, events unknown to this version. An error, one
// sentence: the log has a newer version, or no events.
absl::StatusOr<EventFile> ReadEvents(const std::string& name, absl::string_view text);

// The event log's table (agent_event.h) as a check of one line, as a JSON schema, and as the tables
// of docs/event_log.md.

enum class MoreFields {
  kRefused,  // only fields in the table are valid
  kIgnored,  // as readers do: a later Muster may add fields without a new version
};

// Whether `line` is an event with valid fields. An error is one sentence about the first problem:
// "worker_failed has no rank". kNotFound: the common fields are valid, but the event is unknown.
absl::Status CheckEventLine(const base::Json& line, MoreFields more);

// The JSON schema (draft 2020-12) of a line.
base::Json EventSchema();

// The tables of fields and of events in docs/event_log.md, in Markdown.
std::string EventFieldsInMarkdown();
std::string EventsInMarkdown();

}  // namespace muster::launcher
