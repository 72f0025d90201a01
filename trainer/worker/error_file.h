// The file in which a failed worker tells its launcher why it failed (TORCHELASTIC_ERROR_FILE).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace muster::trainer {

// The JSON that torchrun's agent reads: {"message": {"message": ..., "extraInfo": {"py_callstack":
// ..., "timestamp": "<Unix seconds>"}}} (torch/distributed/elastic/multiprocessing/errors/
// error_handler.py). When there is a py_callstack, torchrun shows it instead of the message,
// because Python's ends with the message; so this one does too. It is left out when `stack` is
// empty. Non-ASCII characters are kept if the text is valid UTF-8.
std::string ErrorFileJson(std::string_view message, std::string_view stack,
                          std::int64_t unix_seconds);

// Writes the file at `path`, with the current time, replacing an existing one. Does nothing when
// `path` is empty, which is torchrun's way of asking for no file. kUnavailable when writing fails.
absl::Status WriteErrorFile(const std::string& path, std::string_view message,
                            std::string_view stack);

}  // namespace muster::trainer
