// What a Python worker decorated with torch's @record leaves behind when it fails: a JSON file that
// names the exception (torch/distributed/elastic/multiprocessing/errors/error_handler.py).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/redact.h"
#include "rendezvous/core/types.h"

namespace muster::launcher {

struct ErrorFile {
  // "ValueError: no such layer".
  std::string message;
  // Python's, lines ended by '\n'; empty when there is none.
  std::string traceback;
  // When it happened, in seconds since 1970 by that node's clock.
  std::optional<std::int64_t> timestamp;

  bool operator==(const ErrorFile&) const = default;
};

// Reads {"message": {"message": TEXT, "extraInfo": {"py_callstack": TEXT, "timestamp": "SECONDS"}}}
// or the older {"message": TEXT, "timestamp": SECONDS}. nullopt when there is no message in it:
// workers write these files while they die, so any part may be missing.
std::optional<ErrorFile> ParseErrorFile(absl::string_view json);

// Writes the root cause of a failed job as such a file, replacing any that exists. torchrun does
// the same at the end for whoever started it, with the worker's exit code (-n for signal n) as
// message.errorCode. Whatever else the worker's own file says is kept if it can be read here. A
// failure without an error file gets one that says how the worker ended.
absl::Status WriteRootCause(const std::string& path, const rendezvous::WorkerFailure& failure,
                            const base::Redactor& redact = {});

// Reads the file at `path`. nullopt when it does not exist, is not a regular file, is larger than 1
// MiB or has no message.
std::optional<ErrorFile> ReadErrorFile(const std::string& path);

}  // namespace muster::launcher
