// The file in which a failed worker tells its launcher why (TORCHELASTIC_ERROR_FILE).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace muster::trainer {

// The JSON that torchrun's agent reads: {"message": {"message": ..., "extraInfo": {"py_callstack":
// ..., "timestamp": "<Unix seconds>"}}} (torch/distributed/elastic/multiprocessing/errors/
// error_handler.py). torchrun shows py_callstack instead of the message when there is one, as
// Python's ends with the message; so this one does, too. Left out when `stack` is empty. Bytes that
// are not ASCII are kept when the texts are UTF-8.
std::string ErrorFileJson(std::string_view message, std::string_view stack,
                          std::int64_t unix_seconds);

// Writes the file at `path`, replacing what is there. Does nothing when `path` is empty, which is
// how torchrun says that it wants none.
absl::Status WriteErrorFile(const std::string& path, std::string_view message,
                            std::string_view stack);

}  // namespace muster::trainer
