// Standard input, output and error, any of which a process may be started without.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::base {

// Opens /dev/null for each of descriptors 0, 1 and 2 that is closed. Call it in main() before
// opening anything: the first file opened would otherwise become one of the three. In every program
// that links this it also runs once before static constructors.
void FillStdio();

// Resets signal dispositions inherited from the parent process.

// Call it in main() before starting a thread or a process.
//
// SIGINT, SIGQUIT and SIGTERM get their default action back. A shell without job control ignores
// the first two for every command that it starts with `&`, and everything started below `trap ''
// TERM` ignores the third. Without this, `kill` would have no effect. An ignored SIGHUP stays
// ignored: that is nohup, and deliberate.
//
// SIGXFSZ is ignored: a write beyond the limit on file sizes (`ulimit -f`) fails with EFBIG, as one
// on a full disk fails with ENOSPC. Workers get its default back (worker/process/spawn.h).
void SetUpSignals();

// Checks what the kernel supports.

// FailedPrecondition, in one line, if the kernel or a container's seccomp filter lacks pidfd_open()
// or waitid() on its result (Linux 5.4). Muster cannot watch processes without them; newer calls
// have fallbacks where they are used. Costs two system calls.
absl::Status CheckKernel();

// A companion process, isolated from signals, that acts after this process dies.

// Lends this process's command line to its companions, which write their names over it: `pkill -f
// muster` must not also hit the companion that cleans up after it. Call it first in main(), with
// main()'s arguments. Without it companions keep the command line.
void LendCommandLine(int argc, char** argv);

// Forks a process that calls `main`, which must not return. It leads a session of its own, is
// called `name` (at most 15 characters) and blocks every signal that can be blocked: this process
// decides how to react to a signal sent to its whole session. The companion inherits everything
// else; `main` closes what it does not need.
//
// May be called in a process with threads; then `main` may only make async-signal-safe calls.
// Returns Unavailable, in one sentence, if the system cannot create a process.
absl::StatusOr<pid_t> StartCompanion(const char* name, absl::FunctionRef<void()> main);

// Waits until the child exits, by whatever cause.
void Reap(pid_t child);

// Writes a command's result to stdout.

// Writes all of `text`, which may hold any bytes. On failure, which includes a stdout that was
// closed before the process began, reports it on stderr with the prefix `command` ("muster ps") and
// returns false.
bool PrintOut(const char* command, const std::string& text);

// The format of every log line of Muster's programs. It is torch's own, so that the lines of both
// read alike on one terminal.

// For spdlog, with the program's name as the logger's: "W1121 16:54:02.337 18678 muster] round 0 is
// over: ...".
inline constexpr char kLogPattern[] = "%L%m%d %H:%M:%S.%e %P %n] %v";

}  // namespace muster::base
