// The command that connects to a host and runs Muster there.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "launcher/machine/environment.h"
#include "launcher/remote/host_list.h"

namespace muster::launcher {

// Connections that ssh keeps for a while after the command that made them, so that the next command
// can reuse them (ssh_config(5): ControlMaster, ControlPath, ControlPersist).

// The default of --ssh-control-persist.
inline constexpr std::chrono::seconds kSshControlPersist{60};

struct KeptConnections {
  // The prefix of ssh's socket paths.
  std::string prefix;
  // How long an idle connection is kept. The command that opened it decides.
  std::chrono::seconds time{};
};

// The maximum length of a socket's path; ssh first creates it with a dot and 16 characters
// appended.
inline constexpr std::size_t kMaxControlPath = 90;

// The first word of Muster's command line on a host of a launch tree. Not for users.
inline constexpr char kHostCommand[] = "_host";

// Where the host's Muster may come from.
enum class ProgramSource {
  kInstalled,           // installed there: at the same path as here, or in PATH
  kInstalledOrShipped,  // else sent there, before or now
  kShipped,             // only sent there
};

// What the host's login shell is known to support. Each extra shell costs a millisecond of CPU
// time.
enum class LoginShell {
  // `&&` and quotes: POSIX shells, csh, fish since 3.0. If Muster is at the same path as here, this
  // shell execs it; otherwise it execs a POSIX shell.
  kUsual,
  // Quotes only: it execs a POSIX shell first.
  kAny,
};

// The command for the host's shell, which runs Muster. If Muster is not installed and may not be
// sent, it prints one line on stderr. To be sent the program, it writes requests, each on a line of
// its own, and reads the answers on stdin:
//   muster: which x86_64?    with the machine's `uname -m`; the answer is a line with the program's
//                            SHA-256 in 64 hexadecimal digits. The host may have that one cached
//   muster: send             the answer is a line with a number, and that many bytes: the gzipped
//                            program, which becomes executable only after its hash was verified
std::string RemoteCommand(const std::string& program, ProgramSource source, LoginShell shell);

inline constexpr char kWhichQuestion[] = "\nmuster: which ";
inline constexpr char kSendQuestion[] = "\nmuster: send\n";

// `ssh` with the user's own configuration, keys and known hosts. It never prompts, allocates no
// terminal, forwards nothing, and notices within 20 s that the host is gone. With `kept` it shares
// a connection, or opens one to share, unless ssh's configuration has one of these:
//  - ControlPath: there may be a connection that was opened by hand, with a password;
//  - ProxyJump, ProxyCommand: the path would end with the command that opened it;
//  - ForwardAgent, GSSAPIDelegateCredentials: the forwarded credentials would be that command's.
std::vector<std::string> SshCommand(const Host& host, const std::string& remote_command,
                                    const std::optional<KeptConnections>& kept);

// Splits the value of --launch-with into words as a shell does (quotes and backslashes only).
// {host} is the host's name, {user} its user, and {command} the command for a shell there. An
// error's message is a phrase that follows the text.
absl::StatusOr<std::vector<std::string>> ParseLaunchWith(absl::string_view text);
std::vector<std::string> LaunchWithCommand(const std::vector<std::string>& words, const Host& host,
                                           const std::string& remote_command);

// `text` quoted as one word for a POSIX shell.
std::string ShellQuoted(absl::string_view text);

// The directory of ssh's sockets for kept connections.

// A directory in $XDG_RUNTIME_DIR, else in /tmp, that is created here and owned and writable by
// this user alone: anyone who could write there could impersonate the hosts. The ssh that keeps a
// connection runs in the environment of the command that opened it, so only commands with the same
// control group, namespaces and limits share one. nullopt if there can be no such directory, `time`
// is zero, or this is a worker's process, whose exit also ends whatever it has started.
std::optional<KeptConnections> FindKeptConnections(std::chrono::milliseconds time,
                                                   const Environment& environment);

}  // namespace muster::launcher
