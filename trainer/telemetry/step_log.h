// A text file with a line for each step or report, which a resumed run continues.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/telemetry/scalars.h"

namespace muster::trainer {

// Written by one thread of one rank. Each line begins with its step, such as "12 0.51" or
// {"step":12,...}, in ascending order. A run that was killed may have logged steps after its last
// checkpoint. The resumed run repeats those steps, so Open() first removes their lines, and the
// file ends up as if the run had never been interrupted.
class StepLog {
 public:
  // Opens the file at `path` for appending. Keeps the complete lines up to step `resumed_step` and
  // cuts the rest; 0 empties the file. Pipes and terminals are not cut. kInvalidArgument when the
  // file cannot be opened or truncated.
  static absl::StatusOr<std::unique_ptr<StepLog>> Open(const std::string& path,
                                                       std::int64_t resumed_step);
  ~StepLog();
  StepLog(const StepLog&) = delete;
  StepLog& operator=(const StepLog&) = delete;

  // Whether a line that Open() has kept reports of the same step, the one that was resumed, all the
  // names that `scalars` has. A run that finds nothing left to do reports again what it is.
  bool Kept(const Scalars& scalars) const;

  // Appends `line`, which must not contain a line break. Errors are reported by Flush().
  void Append(std::string_view line);

  // Hands the appended lines to the kernel. kUnavailable, in this and every later call, when that
  // or an earlier Append() failed.
  absl::Status Flush();

 private:
  StepLog(std::string path, std::FILE* file, std::vector<std::string> kept);

  const std::string path_;
  std::FILE* const file_;
  const std::vector<std::string> kept_;  // lines of the step that was resumed
  int error_ = 0;                        // errno of the first write that failed
};

// The step at the beginning of `line`; nullopt when there is none.
std::optional<std::int64_t> StepOfLine(std::string_view line);

// A JSON object on one line: "step", "time" (Unix seconds), then the values. Numbers that are not
// finite, which JSON cannot express, become null.
std::string JsonLine(const Scalars& scalars);

}  // namespace muster::trainer
