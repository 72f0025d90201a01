// `muster replay`: what happened to a job, from the event logs of its nodes.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/cli/command.h"

namespace muster::launcher {

// Prints a summary to stdout, and writes a page or a trace where that is asked for. Its exit codes
// are in its help.
base::Command ReplayCommand();

// A file read, or written, as a whole.

// Waits for a disk, or a pipe. `what` is what it is called in the error, which is one line: "read
// the event log /x: Permission denied".
absl::StatusOr<std::string> ReadWholeFile(const std::string& what, const std::string& path);

// Replaces what is in the file, or makes it (mode 0600, as logs have). A link of another user's is
// not followed (base/safe_path.h).
absl::Status WriteWholeFile(const std::string& what, const std::string& path,
                            absl::string_view text);

}  // namespace muster::launcher
