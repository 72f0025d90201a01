#include "launcher/hosts/link_command.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace muster::launcher {
namespace {

// Ends with the command that runs what was fetched, so that its arguments may follow. What comes is
// not executable, and has a name of its own, until it is known to be right: hosts that share a home
// fetch at the same time, and the numbers of their shells may be the same.
constexpr char kFetchProgram[] =
    "printf '\\nmuster: which %s?\\n' \"$(uname -m)\"; read -r hash || exit 1; "
    "dir=${XDG_CACHE_HOME:-$HOME/.cache}/muster/$hash; "
    "if ! test -x \"$dir/muster\"; then "
    "printf '\\nmuster: send\\n'; read -r size || exit 1; umask 077; "
    "mkdir -p \"$dir\" && new=$(mktemp \"$dir/new.XXXXXX\") && head -c \"$size\" | gzip -dc "
    ">\"$new\" && "
    "test \"$(sha256sum <\"$new\")\" = \"$hash  -\" && chmod 700 \"$new\" && "
    "mv \"$new\" \"$dir/muster\" || "
    "{ rm -f \"$new\"; echo \"muster could not be put into $dir\" >&2; exit 1; }; fi; "
    "exec \"$dir/muster\" ";

// `ssh`, whose arguments follow what sockets' paths begin with, how long connections are kept, and
// how long such a path may be. The host that is reached is named in the path as ssh's configuration
// says by now: to a name it may give another machine or user from one command to the next.
constexpr char kKeepingSsh[] =
    R"sh(prefix=$1 time=$2 most=$3; shift 3
settings=$(ssh -G "$@" 2>/dev/null </dev/null) && keep=1 || keep=
while read -r name value; do
  case $name in
    hostname) host=$value ;;
    port) port=$value ;;
    user) user=$value ;;
    controlpath | proxyjump | proxycommand) keep= ;;
    forwardagent | gssapidelegatecredentials) test "$value" = no || keep= ;;
  esac
done <<END
$settings
END
path=$prefix$user@$host:$port
case $path in *[!A-Za-z0-9/._@:-]*) keep= ;; esac
if test -n "$keep" && test ${#path} -le "$most"; then
  set -- -oControlMaster=auto -oControlPath="$path" -oControlPersist="$time" "$@"
fi
exec ssh "$@")sh";

}  // namespace

std::string ShellQuoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string RemoteCommand(const std::string& program, ProgramSource source, LoginShell shell) {
  const std::string here = ShellQuoted(program);
  const std::string from_here =
      absl::StrCat("test -x ", here, " && exec ", here, " ", kHostCommand, "; ");
  std::string at_once, script;
  if (source != ProgramSource::kShipped) {
    (shell == LoginShell::kUsual ? at_once : script) = from_here;
    absl::StrAppend(&script, "command -v muster >/dev/null && exec muster ", kHostCommand, "; ");
  }
  absl::StrAppend(&script,
                  source == ProgramSource::kInstalled
                      ? absl::StrCat("echo \"there is no muster there, neither in PATH nor as \"",
                                     here, " >&2; exit 127")
                      : std::string(kFetchProgram) + kHostCommand);
  return absl::StrCat(at_once, "exec sh -c ", ShellQuoted(script));
}

std::vector<std::string> SshCommand(const Host& host, const std::string& remote_command,
                                    const std::optional<KeptConnections>& kept) {
  std::vector<std::string> argv = {"ssh"};
  if (kept) {
    argv = {"sh",
            "-c",
            kKeepingSsh,
            "ssh",
            kept->prefix,
            absl::StrCat(kept->time.count()),
            absl::StrCat(kMaxControlPath)};
  }
  argv.insert(argv.end(), {"-T", "-oBatchMode=yes", "-oClearAllForwardings=yes", "-oForwardX11=no",
                           "-oRequestTTY=no", "-oEscapeChar=none", "-oServerAliveInterval=5",
                           "-oServerAliveCountMax=3"});
  if (!host.user.empty()) argv.insert(argv.end(), {"-l", host.user});
  argv.insert(argv.end(), {"--", host.name, remote_command});
  return argv;
}

absl::StatusOr<std::vector<std::string>> ParseLaunchWith(absl::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word += text[++i];
      in_word = true;
    } else if (quote != '\0') {
      if (c == quote) {
        quote = '\0';
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t') {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != '\0') {
    return absl::InvalidArgumentError(
        absl::StrCat("has a ", std::string(1, quote), " that is not closed; close it"));
  }
  if (in_word) words.push_back(std::move(word));
  bool has_host = false;
  bool has_command = false;
  for (const std::string& each : words) {
    has_host = has_host || absl::StrContains(each, "{host}");
    has_command = has_command || absl::StrContains(each, "{command}");
  }
  if (!has_host || !has_command) {
    return absl::InvalidArgumentError(
        "does not say where the host or the command goes; write {host} and {command}, as in "
        "'docker exec -i {host} sh -c {command}'");
  }
  return words;
}

std::vector<std::string> LaunchWithCommand(const std::vector<std::string>& words, const Host& host,
                                           const std::string& remote_command) {
  std::vector<std::string> argv;
  for (const std::string& word : words) {
    argv.push_back(absl::StrReplaceAll(
        word, {{"{host}", host.name}, {"{user}", host.user}, {"{command}", remote_command}}));
  }
  return argv;
}

}  // namespace muster::launcher
