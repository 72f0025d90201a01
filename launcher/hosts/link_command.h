// The command that connects to a host and runs Muster there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/hosts/host_list.h"
#include "launcher/hosts/kept_connections.h"

namespace muster::launcher {

// The first word of the command line of Muster on a host of a launch tree. Not for people.
inline constexpr char kHostCommand[] = "_host";

// Where Muster on the host may come from.
enum class ProgramSource {
  kInstalled,           // what is there: at the path that it has here, or in PATH
  kInstalledOrShipped,  // else what was sent there before, or is sent now
  kShipped,             // that alone
};

// What the shell on the host that is given the command is sure to know. Each shell that is started
// there costs a millisecond of a processor.
enum class LoginShell {
  // `&&` and quotes: it is one of POSIX's, csh, or fish since 3.0. If Muster is at the path that it
  // has here, this shell becomes Muster itself, and otherwise a POSIX shell.
  kUsual,
  // Quotes: it becomes a POSIX shell at once.
  kAny,
};

// What a shell on the host is given: it runs Muster. Where there is none and none may be sent, one
// line on stderr says so. To be sent one, it asks, on lines of their own, and waits for answers on
// standard input:
//   muster: which x86_64?    after the machine's `uname -m`; the answer is the program's SHA-256,
//   as
//                            64 hexadecimal digits on a line. It may have that one from before
//   muster: send             the answer is a number on a line, and as many bytes, which are the
//   program,
//                            gzipped. It is executable only after its hash has been found right
std::string RemoteCommand(const std::string& program, ProgramSource source, LoginShell shell);

inline constexpr char kWhichQuestion[] = "\nmuster: which ";
inline constexpr char kSendQuestion[] = "\nmuster: send\n";

// `ssh` with the user's own configuration, keys and known hosts. It asks nothing, opens no
// terminal, forwards nothing, and notices within 20 s that the host is gone. With `kept` it goes
// over a connection that is kept, or makes one, unless what ssh has been configured to speaks
// against that:
//  - ControlPath: there may be a connection that was opened by hand, with a password;
//  - ProxyJump, ProxyCommand: the way would end with the command that made it;
//  - ForwardAgent, GSSAPIDelegateCredentials: what is forwarded would be that command's.
std::vector<std::string> SshCommand(const Host& host, const std::string& remote_command,
                                    const std::optional<KeptConnections>& kept);

// --launch-with: words as a shell splits them (quotes and backslashes, nothing else), in which
// {host} is the host's name, {user} its user, and {command} what a shell there is to be given. The
// error's message is a phrase that follows the text.
absl::StatusOr<std::vector<std::string>> ParseLaunchWith(absl::string_view text);
std::vector<std::string> LaunchWithCommand(const std::vector<std::string>& words, const Host& host,
                                           const std::string& remote_command);

// `text` as one word for a POSIX shell.
std::string ShellQuoted(absl::string_view text);

}  // namespace muster::launcher
