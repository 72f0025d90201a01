// The command that connects to a host and runs Muster there.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/hosts/host_list.h"

namespace muster::launcher {

// The first word of the command line of Muster on a host of a launch tree. Not for people.
inline constexpr char kHostCommand[] = "_host";

// What a POSIX shell on the host is given: it runs the Muster that is at `program` there, as it is
// here, or else the one in PATH. One line on stderr says so where there is neither.
std::string RemoteCommand(const std::string& program);

// `ssh` with the user's own configuration, keys and known hosts. It asks nothing, opens no
// terminal, forwards nothing, and notices within 20 s that the host is gone.
std::vector<std::string> SshCommand(const Host& host, const std::string& remote_command);

// --launch-with: words as a shell splits them (quotes and backslashes, nothing else), in which
// {host} is the host's name, {user} its user, and {command} what a shell there is to be given. The
// error's message is a phrase that follows the text.
absl::StatusOr<std::vector<std::string>> ParseLaunchWith(absl::string_view text);
std::vector<std::string> LaunchWithCommand(const std::vector<std::string>& words, const Host& host,
                                           const std::string& remote_command);

// `text` as one word for a POSIX shell.
std::string ShellQuoted(absl::string_view text);

}  // namespace muster::launcher
