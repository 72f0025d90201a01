// The event log's table (event_table.h) in other forms: as a check of one line, as a JSON schema
// and as the tables of docs/event_log.md.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "base/json.h"

namespace muster::launcher {

enum class MoreFields {
  kRefused,  // nothing but what the table has
  kIgnored,  // as a reader does: fields of a later Muster's leave the version as it is
};

// Whether `line` is an event of the table with the fields that it has there. The error is one
// sentence about the first thing that is wrong: "worker_failed has no rank". kNotFound: the event
// is not in the table, and the fields that all lines have are as they should be.
absl::Status CheckEventLine(const base::Json& line, MoreFields more);

// The JSON schema (draft 2020-12) of a line.
base::Json EventSchema();

// The two tables of docs/event_log.md, in Markdown: of the fields, and of the events.
std::string EventFieldsInMarkdown();
std::string EventsInMarkdown();

}  // namespace muster::launcher
