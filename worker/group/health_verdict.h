// What the result of a health check says about its node.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "worker/process/timed_result.h"

namespace muster::worker {

// How much of a check's output is kept.
inline constexpr std::size_t kHealthOutputTail = 4 * 1024;

// OK when `command` has exited with 0 within `timeout`, else FailedPrecondition with one line that
// says why not and ends with the last line of its output:
//   the health check 'nvidia-smi -L' exited with code 9: No devices were found
//   the health check 'nvidia-smi -L' did not end within 30 s and was killed
absl::Status JudgeHealth(const std::string& command, std::chrono::milliseconds timeout,
                         const TimedCommandResult& result);

// For a check without a result: "the health check 'nvidia-smi -L' `why`".
absl::Status HealthUnknown(const std::string& command, const std::string& why);

}  // namespace muster::worker
