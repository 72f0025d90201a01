#include "launcher/error_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"

namespace muster::launcher {
namespace {

using nlohmann::json;

// The member `name` of `object`; null when `object` has none or is no object.
const json& Member(const json& object, const char* name) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

std::string Text(const json& value) {
  return value.is_string() ? value.get<std::string>() : "";
}

std::optional<std::int64_t> Seconds(const json& value) {
  std::int64_t seconds = 0;
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_string() && absl::SimpleAtoi(value.get_ref<const std::string&>(), &seconds)) {
    return seconds;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ErrorFile> ParseErrorFile(absl::string_view text) {
  const json root = json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  const json& message = Member(root, "message");
  ErrorFile file;
  if (message.is_string()) {
    file.message = Text(message);
    file.timestamp = Seconds(Member(root, "timestamp"));
  } else {
    const json& extra = Member(message, "extraInfo");
    file.message = Text(Member(message, "message"));
    file.traceback = Text(Member(extra, "py_callstack"));
    file.timestamp = Seconds(Member(extra, "timestamp"));
  }
  if (file.message.empty()) return std::nullopt;
  return file;
}

std::optional<ErrorFile> ReadErrorFile(const std::string& path) {
  constexpr std::uintmax_t kMaxBytes = 1 << 20;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  if (std::filesystem::file_size(path, error) > kMaxBytes || error) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return ParseErrorFile(text);
}

}  // namespace muster::launcher
