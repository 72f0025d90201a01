#include "trainer/worker/error_file.h"

#include <chrono>
#include <fstream>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/failure.h"

namespace muster::trainer {
namespace {

// What is no UTF-8, such as a path may hold, becomes U+FFFD: nobody could read the file otherwise.
std::string JsonString(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string ErrorFileJson(std::string_view message, std::string_view stack,
                          std::int64_t unix_seconds) {
  std::string callstack;
  if (!stack.empty()) {
    const std::string text = std::string(stack) + "\n" + std::string(message);
    callstack = absl::StrCat("\"py_callstack\": ", JsonString(text), ", ");
  }
  return absl::StrCat("{\"message\": {\"message\": ", JsonString(message), ", \"extraInfo\": {",
                      callstack, "\"timestamp\": \"", unix_seconds, "\"}}}\n");
}

absl::Status WriteErrorFile(const std::string& path, std::string_view message,
                            std::string_view stack) {
  if (path.empty()) return absl::OkStatus();
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << ErrorFileJson(message, stack,
                        std::chrono::duration_cast<std::chrono::seconds>(since_epoch).count());
  file.close();
  if (file.good()) return absl::OkStatus();
  return base::SystemFailure(absl::StatusCode::kUnavailable, "write error file", path);
}

}  // namespace muster::trainer
