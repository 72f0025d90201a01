#include "trainer/telemetry/step_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/failure.h"
#include "base/json.h"

namespace muster::trainer {
namespace {

constexpr std::string_view kJsonStart = "{\"step\":";

// How many bytes of the file at `path` are whole lines of steps up to `last_step`. Those of that
// step itself are added to `of_last`.
std::int64_t BytesUpTo(const std::string& path, std::int64_t last_step,
                       std::vector<std::string>* of_last) {
  std::ifstream file(path, std::ios::binary);
  std::int64_t bytes = 0;
  // A line without an end was being written when the run was killed. getline() then meets the end
  // of the file.
  for (std::string line; std::getline(file, line) && !file.eof();) {
    const std::optional<std::int64_t> step = StepOfLine(line);
    if (!step || *step > last_step) break;
    bytes += static_cast<std::int64_t>(line.size()) + 1;
    if (*step == last_step) of_last->push_back(line);
  }
  return bytes;
}

// How a value's name stands in a line of JSON.
std::string NameInLine(const std::string& name) {
  return absl::StrCat(",", base::JsonText(name), ":");
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepLog>> StepLog::Open(const std::string& path,
                                                       std::int64_t resumed_step) {
  const auto failure = [&path] {
    return base::SystemFailure(absl::StatusCode::kInvalidArgument, "write", path);
  };
  std::vector<std::string> of_last;
  const std::int64_t kept = resumed_step > 0 ? BytesUpTo(path, resumed_step, &of_last) : 0;
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return failure();
  // Pipes and terminals have no length to set, and nothing to cut.
  std::error_code ignored;
  const bool regular = std::filesystem::is_regular_file(path, ignored);
  std::FILE* file = regular && ftruncate(fd, kept) != 0 ? nullptr : fdopen(fd, "ab");
  if (file == nullptr) {
    const absl::Status status = failure();
    close(fd);
    return status;
  }
  return std::unique_ptr<StepLog>(new StepLog(path, file, std::move(of_last)));
}

StepLog::StepLog(std::string path, std::FILE* file, std::vector<std::string> kept)
    : path_(std::move(path)), file_(file), kept_(std::move(kept)) {}

StepLog::~StepLog() {
  std::fclose(file_);
}

bool StepLog::Kept(const Scalars& scalars) const {
  return std::any_of(kept_.begin(), kept_.end(), [&](const std::string& line) {
    return StepOfLine(line) == scalars.step &&
           std::all_of(scalars.values.begin(), scalars.values.end(), [&](const auto& value) {
             return line.find(NameInLine(value.first)) != std::string::npos;
           });
  });
}

void StepLog::Append(std::string_view line) {
  const bool written = std::fwrite(line.data(), 1, line.size(), file_) == line.size() &&
                       std::fputc('\n', file_) != EOF;
  if (!written && error_ == 0) error_ = errno;
}

absl::Status StepLog::Flush() {
  if (std::fflush(file_) != 0 && error_ == 0) error_ = errno;
  if (error_ == 0) return absl::OkStatus();
  return base::SystemFailure(absl::StatusCode::kUnavailable, "write", path_, error_);
}

std::optional<std::int64_t> StepOfLine(std::string_view line) {
  if (line.substr(0, kJsonStart.size()) == kJsonStart) line.remove_prefix(kJsonStart.size());
  const std::string_view digits = line.substr(0, line.find_first_not_of("0123456789"));
  std::int64_t step = 0;
  if (!absl::SimpleAtoi(absl::string_view(digits.data(), digits.size()), &step)) {
    return std::nullopt;
  }
  return step;
}

std::string JsonLine(const Scalars& scalars) {
  std::string json =
      absl::StrFormat("{\"step\":%d,\"time\":%.3f", scalars.step, scalars.unix_seconds);
  for (const auto& [name, value] : scalars.values) {
    json += NameInLine(name);
    json += std::isfinite(value) ? absl::StrFormat("%.9g", value) : "null";
  }
  return json + "}";
}

}  // namespace muster::trainer
