// The format of the event log as one table: which events there are and which fields each has. What
// is written (event_log.h), what is accepted (event_schema.h), docs/event_log.md and its JSON
// schema all follow from it.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "launcher/report/agent_event.h"

namespace muster::launcher {

// What `log_opened` says. It grows when a field goes or comes to mean something else: a reader of
// an older version must then refuse the log. Further events and fields leave it as it is.
inline constexpr int kEventLogVersion = 1;

// The order of the fields in a line.
enum class EventField {
  kTime,
  kMonotonic,
  kEvent,
  kJob,
  kNode,
  kVersion,
  kMuster,
  kWorkers,
  kRound,
  kRank,
  kPid,
  kIncarnation,
  kNodeRank,
  kNodes,
  kFirstRank,
  kWorldSize,
  kCause,
};

struct EventFieldRow {
  EventField field;
  absl::string_view name;
  // Of a number: the least that it can be. Of a text: a regular expression, or nothing.
  enum class Type { kText, kInteger, kNumber } type;
  std::int64_t minimum = 0;
  absl::string_view pattern = {};
  absl::string_view what;
};

// A set of fields.
using EventFields = std::uint32_t;

constexpr EventFields In(EventField field) {
  return EventFields{1} << static_cast<int>(field);
}

struct EventRow {
  AgentEventKind kind;
  absl::string_view name;
  // In every line of this event, beyond those that all lines have; in some; the others in none.
  EventFields always = 0;
  EventFields sometimes = 0;
  absl::string_view what;
  // What `cause` says, if there is one; and the words it is one of, with '|', if it is one of few.
  absl::string_view cause = {};
  absl::string_view cause_words = {};
};

// The fields that every line has.
inline constexpr EventFields kCommonFields = In(EventField::kTime) | In(EventField::kMonotonic) |
                                             In(EventField::kEvent) | In(EventField::kJob) |
                                             In(EventField::kNode);

// In the order of EventField and of AgentEventKind.
absl::Span<const EventFieldRow> EventFieldTable();
absl::Span<const EventRow> EventTable();

// The row of that name; null if there is none.
const EventRow* FindEvent(absl::string_view name);

}  // namespace muster::launcher
