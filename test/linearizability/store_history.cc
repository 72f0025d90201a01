#include "test/linearizability/store_history.h"

#include <algorithm>
#include <array>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace muster::linearizability {
namespace {

constexpr std::array<const char*, 9> kCommandNames = {
    "Get", "Set", "Add", "CompareSet", "Append", "Delete", "Check", "MultiGet", "MultiSet"};
static_assert(static_cast<std::size_t>(StoreCommand::kMultiSet) + 1 == kCommandNames.size());

std::string ShownAll(const std::vector<std::string>& texts) {
  return absl::StrJoin(texts, " ",
                       [](std::string* out, const std::string& text) { out->append(Shown(text)); });
}

std::string ToText(const StoreCall& call) {
  std::string text =
      absl::StrCat(kCommandNames[static_cast<std::size_t>(call.command)], " ", ShownAll(call.keys));
  if (!call.values.empty()) absl::StrAppend(&text, " ", ShownAll(call.values));
  if (call.command == StoreCommand::kAdd) absl::StrAppend(&text, " ", call.delta);
  return text;
}

std::string ToText(StoreCommand command, const StoreAnswer& answer) {
  switch (answer.kind) {
    case StoreAnswer::Kind::kNotANumber:
      return "not a number";
    case StoreAnswer::Kind::kTooLarge:
      return "number too large";
    case StoreAnswer::Kind::kUnknown:
      return "unknown";
    case StoreAnswer::Kind::kDone:
      break;
  }
  std::string values = absl::StrJoin(
      answer.values, " ", [](std::string* out, const auto& value) { out->append(Shown(value)); });
  switch (command) {
    case StoreCommand::kGet:
    case StoreCommand::kMultiGet:
      return values;
    case StoreCommand::kAdd:
      return absl::StrCat(answer.sum);
    case StoreCommand::kCompareSet:
      return absl::StrCat(answer.yes ? "stored, " : "not stored, ", values);
    case StoreCommand::kDelete:
    case StoreCommand::kCheck:
      return answer.yes ? "yes" : "no";
    case StoreCommand::kSet:
    case StoreCommand::kAppend:
    case StoreCommand::kMultiSet:
      break;
  }
  return "done";
}

}  // namespace

bool StoreCall::writes() const {
  return command != StoreCommand::kGet && command != StoreCommand::kCheck &&
         command != StoreCommand::kMultiGet;
}

std::string Shown(const std::optional<std::string>& value) {
  return value ? absl::StrCat("'", absl::CEscape(*value), "'") : "nothing";
}

std::string ToText(const StoreOperation& operation, std::int64_t zero_ns) {
  const auto microseconds = [zero_ns](std::int64_t time) { return (time - zero_ns) / 1000; };
  return absl::StrFormat("%8d..%-8d us  client %d  %s -> %s", microseconds(operation.span.call_ns),
                         microseconds(operation.ended_ns), operation.client, ToText(operation.call),
                         ToText(operation.call.command, operation.answer));
}

std::string ToText(StoreHistory history) {
  std::stable_sort(history.begin(), history.end(),
                   [](const auto& a, const auto& b) { return a.span.call_ns < b.span.call_ns; });
  std::string text;
  for (const StoreOperation& operation : history) {
    absl::StrAppend(&text, ToText(operation, history.front().span.call_ns), "\n");
  }
  return text;
}

}  // namespace muster::linearizability
