// A text file with a line for each step or report, that a resumed run goes on with.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/telemetry/scalars.h"

namespace muster::trainer {

// Written by one thread of one rank. Lines begin with their step, as "12 0.51" or {"step":12,...},
// in rising order. A run that was killed may have written lines for steps after its last
// checkpoint; the run that resumes takes these steps again, so their lines go first, and the file
// ends up as if nothing had happened.
class StepLog {
 public:
  // Opens the file at `path`, keeping of what is there the whole lines of steps up to
  // `resumed_step`; 0 makes it empty. kInvalidArgument when it cannot be opened or changed.
  static absl::StatusOr<std::unique_ptr<StepLog>> Open(const std::string& path,
                                                       std::int64_t resumed_step);
  ~StepLog();
  StepLog(const StepLog&) = delete;
  StepLog& operator=(const StepLog&) = delete;

  // Adds `line`, which has no line break.
  void Append(std::string_view line);

  // Hands what was appended to the kernel. kUnavailable, now and from now on, when that or an
  // append failed.
  absl::Status Flush();

 private:
  StepLog(std::string path, std::FILE* file);

  const std::string path_;
  std::FILE* const file_;
  int error_ = 0;  // errno of the first write that failed
};

// The step a line begins with; nullopt when it begins with none.
std::optional<std::int64_t> StepOfLine(std::string_view line);

// One JSON object on one line: "step", "time" (Unix seconds), then the values. JSON has no word for
// a number that is not finite: null stands for it.
std::string JsonLine(const Scalars& scalars);

}  // namespace muster::trainer
