#include "launcher/report/error_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/failure.h"
#include "base/json.h"
#include "base/redact_json.h"

namespace muster::launcher {
namespace {

using base::Json;

// The member `name` of `object`; null when `object` has none or is no object.
const Json& Member(const Json& object, const char* name) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

std::string Text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : "";
}

std::optional<std::int64_t> Seconds(const Json& value) {
  std::int64_t seconds = 0;
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_string() && absl::SimpleAtoi(value.get_ref<const std::string&>(), &seconds)) {
    return seconds;
  }
  return std::nullopt;
}

// The file's bytes; nothing when it is not there, is no regular file or is larger than 1 MiB.
std::optional<std::string> ReadText(const std::string& path) {
  constexpr std::uintmax_t kMaxBytes = 1 << 20;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  if (std::filesystem::file_size(path, error) > kMaxBytes || error) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  return std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::optional<ErrorFile> ParseErrorFile(absl::string_view text) {
  const Json root = base::ParseJson({text.data(), text.size()});
  const Json& message = Member(root, "message");
  ErrorFile file;
  if (message.is_string()) {
    file.message = Text(message);
    file.timestamp = Seconds(Member(root, "timestamp"));
  } else {
    const Json& extra = Member(message, "extraInfo");
    file.message = Text(Member(message, "message"));
    file.traceback = Text(Member(extra, "py_callstack"));
    file.timestamp = Seconds(Member(extra, "timestamp"));
  }
  if (file.message.empty()) return std::nullopt;
  return file;
}

std::optional<ErrorFile> ReadErrorFile(const std::string& path) {
  const std::optional<std::string> text = ReadText(path);
  return text ? ParseErrorFile(*text) : std::nullopt;
}

absl::Status WriteRootCause(const std::string& path, const rendezvous::WorkerFailure& failure,
                            const base::Redactor& redact) {
  const std::string own = ReadText(failure.error_file).value_or("");
  Json root = base::ParseJson(own);
  // What is reported has no secrets any more.
  const bool same =
      root.is_object() && root.contains("message") && root["message"].is_object() &&
      redact(Text(Member(root["message"], "message"))) == redact(failure.error_message);
  if (!same) {
    root = {{"message",
             {{"message", failure.error_message.empty() ? failure.what : failure.error_message},
              {"extraInfo",
               {{"py_callstack", failure.error_traceback},
                {"timestamp", absl::StrCat(failure.error_time)}}}}}};
  }
  root["message"]["errorCode"] = failure.signal != 0 ? -failure.signal : failure.exit_code;
  base::RedactTexts(redact, root);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << base::JsonText(root);
  file.close();
  if (file) return absl::OkStatus();
  return base::SystemFailure(absl::StatusCode::kUnavailable, "write the root cause to",
                             path + " (TORCHELASTIC_ERROR_FILE)");
}

}  // namespace muster::launcher
