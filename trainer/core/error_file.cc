#include "trainer/core/error_file.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

std::string JsonString(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (c == '\n') {
      json += "\\n";
    } else if (byte < 0x20) {
      absl::StrAppend(&json, "\\u", absl::Hex(byte, absl::kZeroPad4));
    } else {
      json += c;
    }
  }
  return json + '"';
}

}  // namespace

std::string ErrorFileJson(std::string_view message, std::int64_t unix_seconds) {
  return absl::StrCat("{\"message\": {\"message\": ", JsonString(message),
                      ", \"extraInfo\": {\"timestamp\": \"", unix_seconds, "\"}}}\n");
}

absl::Status WriteErrorFile(const std::string& path, std::string_view message) {
  if (path.empty()) return absl::OkStatus();
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << ErrorFileJson(message,
                        std::chrono::duration_cast<std::chrono::seconds>(since_epoch).count());
  file.close();
  if (file.good()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("write error file ", path, ": ", std::strerror(errno)));
}

}  // namespace muster::trainer
