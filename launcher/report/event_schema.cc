#include "launcher/report/event_schema.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "launcher/report/event_table.h"

namespace muster::launcher {
namespace {

using base::Json;
using Type = EventFieldRow::Type;

// So that nanoseconds can be added up: 200 and 30 years.
constexpr absl::Duration kLatest = absl::Hours(200 * 365 * 24);
constexpr double kLongestUptime = 1e9;

bool IsNodeId(absl::string_view text) {
  if (text.empty() || text.size() > 64 || !absl::ascii_isalnum(text[0])) return false;
  for (const char c : text) {
    if (!absl::ascii_isalnum(c) && c != '.' && c != '_' && c != '-') return false;
  }
  return true;
}

// What the regular expression of the field says.
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
      // What does not fit is no number that Muster writes.
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

// Those of `wanted` are there, and what is there of `known` is as it should be.
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
  if (!line.is_object()) return Wrong("the line", "is no JSON object");
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
