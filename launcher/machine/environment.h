// The environment as a value, so that dependence on it shows in a function's arguments.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/safe_path.h"

namespace muster::launcher {

// Name to value. Ordered, so that output derived from it is deterministic.
using Environment = std::map<std::string, std::string>;

// Reads an environment block such as `environ`: NAME=VALUE strings up to a null pointer. Skips
// entries without '='; of two entries with the same name the first counts, as for getenv().
Environment ReadEnvironment(const char* const* block);

// The inverse: NAME=VALUE, sorted by name.
std::vector<std::string> ToBlock(const Environment& environment);

// The value of `name`, or `fallback` if it is unset or empty: a job template with an unfilled field
// means "not given".
std::string GetOr(const Environment& environment, const std::string& name,
                  const std::string& fallback);

// A descriptor that the agent's parent leaves open for it and names in a variable.

// The descriptor in the variable `name`, if it is open and not 0, 1 or 2; it becomes close-on-exec.
// Removes the variable, as workers do not inherit the descriptor.
std::optional<int> TakeInheritedFd(Environment& environment, const std::string& name);

// The agent's own output, apart from its workers'.

// The variable that names the descriptor for the agent's log and report. A launch tree sets it,
// because it brings the output of many agents to one terminal and must know each line's source. An
// agent outside a tree writes both to stderr.
inline constexpr char kSpeechVariable[] = "MUSTER_SPEECH_FD";

// Precedes the report, the last output.
inline constexpr char kReportMark = '\f';

// The descriptor in that variable, if it is open. Removes the variable, as workers do not inherit
// the descriptor.
std::optional<int> TakeSpeechFd(Environment& environment);

// Where temporary files go.

struct TempDir {
  // Absolute. Empty if none of the directories is writable.
  std::string path;
  // One line for the user if the environment names an unusable directory, else empty.
  std::string note;
};

// The first directory in which a file can be written, in the order of Python's tempfile, so that
// the agent chooses the same as torchrun: $TMPDIR, $TEMP, $TMP, /tmp, /var/tmp, /usr/tmp, and the
// working directory. Writes a test file to each, as a read-only or full disk shows only then. May
// block on a network file system.
TempDir FindTempDir(const Environment& environment);

// The same with `usual` in place of /tmp and what follows it.
TempDir FindTempDir(const Environment& environment, const std::vector<std::string>& usual);

// Where one user's runs on one machine find one another.

inline base::UserPlace RunsPlaceOf(const Environment& environment) {
  return base::UserPlaceOf([&](const char* name) { return GetOr(environment, name, ""); });
}

// Candidate directories; a run registers in the first one that works.
inline std::vector<std::string> RunsDirs(const base::UserPlace& place) {
  return base::UserFolders(place);
}

}  // namespace muster::launcher
