#include "trainer/worker/error_file.h"

#include <chrono>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/failure.h"
#include "base/json.h"

namespace muster::trainer {
std::string ErrorFileJson(std::string_view message, std::string_view stack,
                          std::int64_t unix_seconds) {
  base::Json extra = {{"timestamp", absl::StrCat(unix_seconds)}};
  if (!stack.empty()) extra["py_callstack"] = std::string(stack) + "\n" + std::string(message);
  const base::Json message_member = {{"message", message}, {"extraInfo", std::move(extra)}};
  return base::JsonText({{"message", message_member}}) + "\n";
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
