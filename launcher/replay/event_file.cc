#include "launcher/replay/event_file.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"

#include "base/json.h"
#include "base/text.h"
#include "launcher/replay/agent_event.h"

namespace muster::launcher {
namespace {

using base::Json;

// The line was checked against the table before.
int IntOf(const Json& line, const char* name, int otherwise) {
  const auto found = line.find(name);
  return found == line.end() ? otherwise : found->get<int>();
}

std::string TextOf(const Json& line, const char* name) {
  const auto found = line.find(name);
  return found == line.end() ? "" : found->get<std::string>();
}

std::chrono::nanoseconds WallOf(const Json& line) {
  absl::Time time;
  (void)absl::ParseTime("%Y-%m-%dT%H:%M:%E3SZ", TextOf(line, "time"), &time, nullptr);
  return absl::ToChronoNanoseconds(time - absl::UnixEpoch());
}

LoggedEvent EventOf(const Json& line, AgentEventKind kind) {
  LoggedEvent event{.kind = kind,
                    .wall = WallOf(line),
                    .monotonic = std::chrono::nanoseconds(
                        std::llround(line.find("monotonic")->get<double>() * 1e6) * 1000),
                    .rank = IntOf(line, "rank", -1),
                    .cause = TextOf(line, "cause"),
                    .workers = IntOf(line, "workers", 0)};
  if (const auto round = line.find("round"); round != line.end()) {
    event.round = round->get<rendezvous::RoundNumber>();
  }
  if (kind == AgentEventKind::kAssigned) {
    EventPlace place{.node_rank = IntOf(line, "node_rank", 0),
                     .nodes = IntOf(line, "nodes", 1),
                     .first_rank = IntOf(line, "first_rank", 0),
                     .world_size = IntOf(line, "world_size", 1)};
    (void)absl::SimpleHexAtoi(TextOf(line, "incarnation"), &place.incarnation);
    event.place = place;
  }
  return event;
}

// Reads one log, line by line.
class Reading {
 public:
  explicit Reading(const std::string& name) : name_(name) {}

  absl::Status Take(absl::string_view text, int number, bool is_whole) {
    if (text.empty()) return absl::OkStatus();
    const Json line = base::ParseJson({text.data(), text.size()});
    if (line.is_discarded() && !is_whole) {
      Note("its last line is incomplete");
      return absl::OkStatus();
    }
    absl::Status status = CheckVersion(line);
    if (!status.ok()) return status;
    status = line.is_discarded() ? absl::InvalidArgumentError("the line is not JSON")
                                 : CheckEventLine(line, MoreFields::kIgnored);
    if (absl::IsNotFound(status)) {
      ++unknown_[TextOf(line, "event")];
    } else if (!status.ok()) {
      if (unread_++ == 0) first_unread_ = absl::StrCat("line ", number, ": ", status.message());
    } else {
      Keep(line);
    }
    return absl::OkStatus();
  }

  EventFile Finish() && {
    if (unread_ > 0) {
      Note(absl::StrCat(base::Count(unread_, "line"),
                        unread_ == 1 ? " is not an event and is" : " are not events and are",
                        " left out (", first_unread_, ")"));
    }
    if (!unknown_.empty()) {
      std::vector<std::string> names;
      for (const auto& [event, count] : unknown_) names.push_back(absl::StrCat(event, " ", count));
      Note(absl::StrCat("events that this version does not know are left out: ",
                        base::ShortList(names)));
    }
    for (const NodeEvents& node : file_.nodes) {
      if (opened_.count(node.node) == 0) {
        Note(absl::StrCat("the log of node ", node.node,
                          " has no beginning; it is read as version ", kEventLogVersion));
      }
    }
    return std::move(file_);
  }

 private:
  void Note(absl::string_view sentence) {
    file_.notes.push_back(absl::StrCat(name_, ": ", sentence));
  }

  // Checked first, as a newer version may use other fields.
  absl::Status CheckVersion(const Json& line) const {
    if (!line.is_object()) return absl::OkStatus();
    const auto version = line.find("version");
    if (version == line.end() || !version->is_number_integer()) return absl::OkStatus();
    if (version->get<std::int64_t>() <= kEventLogVersion) return absl::OkStatus();
    const auto muster = line.find("muster");
    const bool is_told = muster != line.end() && muster->is_string();
    return absl::FailedPreconditionError(absl::StrCat(
        "read the event log ", name_, ": it has version ", version->get<std::int64_t>(),
        " of the format, and this muster reads version ", kEventLogVersion, "; use muster ",
        is_told ? muster->get<std::string>() : "of the version that wrote it", " or newer"));
  }

  void Keep(const Json& line) {
    const std::string node = TextOf(line, "node");
    const EventRow* const row = FindEvent(TextOf(line, "event"));
    const auto [at, is_new] = index_.try_emplace(node, file_.nodes.size());
    if (is_new) file_.nodes.push_back({.job = TextOf(line, "job"), .node = node, .events = {}});
    if (row->kind == AgentEventKind::kLogOpened) opened_.insert(node);
    file_.nodes[at->second].events.push_back(EventOf(line, row->kind));
  }

  const std::string name_;
  EventFile file_;
  std::map<std::string, std::size_t> index_;  // of file_.nodes, by node
  std::set<std::string> opened_;              // nodes whose first line is in this file
  std::map<std::string, int> unknown_;        // unknown events: how many of each name
  std::size_t unread_ = 0;
  std::string first_unread_;
};

}  // namespace

absl::StatusOr<EventFile> ReadEvents(const std::string& name, absl::string_view text) {
  Reading reading(name);
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const bool is_whole = end != absl::string_view::npos;
    const absl::Status status = reading.Take(text.substr(0, end), number, is_whole);
    if (!status.ok()) return status;
    text.remove_prefix(is_whole ? end + 1 : text.size());
  }
  EventFile file = std::move(reading).Finish();
  if (file.nodes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("read the event log ", name,
                     ": it has no events; give files written by muster run --event-log=FILE"));
  }
  return file;
}

namespace {

using Type = EventFieldRow::Type;

// Limits that keep sums within nanoseconds: 200 years, and 30 years of uptime.
constexpr absl::Duration kLatest = absl::Hours(200 * 365 * 24);
constexpr double kLongestUptime = 1e9;

bool IsNodeId(absl::string_view text) {
  if (text.empty() || text.size() > 64 || !absl::ascii_isalnum(text[0])) return false;
  for (const char c : text) {
    if (!absl::ascii_isalnum(c) && c != '.' && c != '_' && c != '-') return false;
  }
  return true;
}

// Whether the text matches the field's regular expression.
bool FitsPattern(EventField field, absl::string_view text) {
  switch (field) {
    case EventField::kTime: {
      absl::Time time;
      return text.size() == 24 && text[10] == 'T' && text[19] == '.' &&
             absl::ParseTime("%Y-%m-%dT%H:%M:%E3SZ", text, &time, nullptr) &&
             time >= absl::UnixEpoch() && time < absl::UnixEpoch() + kLatest;
    }
    case EventField::kIncarnation:
      return text.size() == 16 &&
             text.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
    case EventField::kNode:
      return IsNodeId(text);
    default:
      return true;
  }
}

bool Fits(const EventFieldRow& row, const Json& value) {
  switch (row.type) {
    case Type::kText:
      return value.is_string() && FitsPattern(row.field, value.get_ref<const std::string&>());
    case Type::kInteger:
      // Muster writes no larger number.
      return value.is_number_integer() &&
             (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT32_MAX) &&
             value.get<std::int64_t>() >= row.minimum;
    case Type::kNumber:
      return value.is_number() && value.get<double>() >= static_cast<double>(row.minimum) &&
             value.get<double>() <= kLongestUptime;
  }
  return false;
}

absl::Status Wrong(absl::string_view event, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(event, " ", what));
}

// Checks that all of `wanted` are present, and that the present ones of `known` are valid.
absl::Status CheckFields(absl::string_view event, const Json& line, EventFields wanted,
                         EventFields known) {
  for (const EventFieldRow& row : EventFieldTable()) {
    if ((known & In(row.field)) == 0) continue;
    const auto found = line.find(row.name);
    if (found == line.end()) {
      if ((wanted & In(row.field)) != 0) return Wrong(event, absl::StrCat("has no ", row.name));
    } else if (!Fits(row, *found)) {
      return Wrong(event, absl::StrCat("has a ", row.name, " that is none"));
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> CauseWords(const EventRow& row) {
  return absl::StrSplit(row.cause_words, '|', absl::SkipEmpty());
}

bool HasCauseOf(const EventRow& row, const Json& line) {
  const std::vector<std::string> words = CauseWords(row);
  return words.empty() || std::find(words.begin(), words.end(), line["cause"]) != words.end();
}

absl::Status CheckNoMore(const EventRow& row, const Json& line, EventFields known) {
  for (const auto& [name, value] : line.items()) {
    bool is_known = false;
    for (const EventFieldRow& field : EventFieldTable()) {
      is_known = is_known || (field.name == name && (known & In(field.field)) != 0);
    }
    if (!is_known) return Wrong(row.name, absl::StrCat("has a ", name));
  }
  return absl::OkStatus();
}

std::string FieldRef(const EventFieldRow& row) {
  return absl::StrCat("#/$defs/", row.name);
}

Json SchemaOf(const EventFieldRow& row) {
  Json schema;
  schema["description"] = row.what;
  schema["type"] = row.type == Type::kText      ? "string"
                   : row.type == Type::kInteger ? "integer"
                                                : "number";
  if (row.type != Type::kText) schema["minimum"] = row.minimum;
  if (!row.pattern.empty()) schema["pattern"] = row.pattern;
  return schema;
}

Json SchemaOf(const EventRow& row) {
  Json schema;
  schema["description"] = row.what;
  schema["type"] = "object";
  schema["required"] = Json::array();
  for (const EventFieldRow& field : EventFieldTable()) {
    const EventFields bit = In(field.field);
    if (((kCommonFields | row.always | row.sometimes) & bit) == 0) continue;
    const std::string name(field.name);
    if (((kCommonFields | row.always) & bit) != 0) schema["required"].push_back(name);
    Json& property = schema["properties"][name];
    property = {{"$ref", FieldRef(field)}};
    if (field.field == EventField::kEvent) property["const"] = row.name;
    if (field.field == EventField::kVersion) property["const"] = kEventLogVersion;
    if (field.field == EventField::kCause) property["description"] = row.cause;
    if (field.field == EventField::kCause && !row.cause_words.empty()) {
      property["enum"] = CauseWords(row);
    }
  }
  schema["additionalProperties"] = false;
  return schema;
}

}  // namespace

absl::Status CheckEventLine(const Json& line, MoreFields more) {
  if (!line.is_object()) return Wrong("the line", "is not a JSON object");
  absl::Status status = CheckFields("the line", line, kCommonFields, kCommonFields);
  if (!status.ok()) return status;
  const std::string& event = line.find("event")->get_ref<const std::string&>();
  const EventRow* const row = FindEvent(event);
  if (row == nullptr) return absl::NotFoundError(absl::StrCat("there is no event '", event, "'"));
  const EventFields known = kCommonFields | row->always | row->sometimes;
  status = CheckFields(row->name, line, row->always, known);
  if (!status.ok()) return status;
  if (!HasCauseOf(*row, line)) return Wrong(row->name, "has a cause that is none");
  return more == MoreFields::kIgnored ? status : CheckNoMore(*row, line, known);
}

Json EventSchema() {
  Json schema;
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = absl::StrCat("A line of Muster's event log, version ", kEventLogVersion);
  schema["oneOf"] = Json::array();
  for (const EventRow& row : EventTable()) schema["oneOf"].push_back(SchemaOf(row));
  for (const EventFieldRow& row : EventFieldTable()) {
    schema["$defs"][std::string(row.name)] = SchemaOf(row);
  }
  return schema;
}

std::string EventFieldsInMarkdown() {
  std::string text = "| field | type | what it is |\n|---|---|---|\n";
  for (const EventFieldRow& row : EventFieldTable()) {
    const char* const type = row.type == Type::kText      ? "text"
                             : row.type == Type::kInteger ? "integer"
                                                          : "number";
    absl::StrAppend(&text, "| `", row.name, "` | ", type, " | ", row.what, " |\n");
  }
  return text;
}

std::string EventsInMarkdown() {
  std::string text =
      "| event | when | beyond the first five fields | `cause` |\n|---|---|---|---|\n";
  for (const EventRow& row : EventTable()) {
    std::vector<std::string> fields;
    for (const EventFieldRow& field : EventFieldTable()) {
      if ((row.always & In(field.field)) != 0) fields.push_back(absl::StrCat("`", field.name, "`"));
      if ((row.sometimes & In(field.field)) != 0) {
        fields.push_back(absl::StrCat("`", field.name, "` (not always)"));
      }
    }
    std::string cause(row.cause);
    if (!row.cause_words.empty()) {
      absl::StrAppend(&cause, ": `", absl::StrJoin(CauseWords(row), "`, `"), "`");
    }
    absl::StrAppend(&text, "| `", row.name, "` | ", row.what, " | ", absl::StrJoin(fields, ", "),
                    " | ", cause, " |\n");
  }
  return text;
}

}  // namespace muster::launcher
