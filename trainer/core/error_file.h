// The file in which a failed worker tells its launcher why (TORCHELASTIC_ERROR_FILE).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace muster::trainer {

// The JSON that torchrun's agent reads: {"message": {"message": ..., "extraInfo": {"timestamp":
// "<Unix seconds>"}}} (torch/distributed/elastic/multiprocessing/errors/error_handler.py). There is
// no "py_callstack" in it, so torchrun shows the message itself. Bytes that are not ASCII are kept
// when `message` is UTF-8.
std::string ErrorFileJson(std::string_view message, std::int64_t unix_seconds);

// Writes the file at `path`, replacing what is there. Does nothing when `path` is empty, which is
// how torchrun says that it wants none.
absl::Status WriteErrorFile(const std::string& path, std::string_view message);

}  // namespace muster::trainer
