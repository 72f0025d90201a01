#include "launcher/remote/link_command.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <fstream>
#include <iterator>

#include <openssl/sha.h>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include "worker/env_names.h"

namespace muster::launcher {
namespace {

// Ends with the command that runs the fetched program, so that arguments can follow. The download
// is not executable, and has a unique name, until it is verified: hosts with a shared home
// directory fetch at the same time, and their shells' PIDs may be equal. The program must run once
// before it is kept: on a noexec file system it would be sent every time. `why` is the last line of
// output if it was not kept.
constexpr char kFetchProgram[] =
    "printf '\\nmuster: which %s?\\n' \"$(uname -m)\"; read -r hash || exit 1; "
    "dir=${XDG_CACHE_HOME:-$HOME/.cache}/muster/$hash; "
    "if ! test -x \"$dir/muster\"; then "
    "printf '\\nmuster: send\\n'; read -r size || exit 1; umask 077; "
    "why=$({ mkdir -p \"$dir\" && new=$(mktemp \"$dir/new.XXXXXX\") && { "
    "head -c \"$size\" | gzip -dc >\"$new\" && "
    "{ test \"$(sha256sum <\"$new\")\" = \"$hash  -\" || "
    "{ echo what arrived is not what was sent; false; }; } && chmod 700 \"$new\" && "
    "{ no=$(\"$new\" --version 2>&1 >/dev/null) || "
    "{ echo \"it cannot be run there (noexec?): ${no##*: }\"; false; }; } && "
    "mv \"$new\" \"$dir/muster\" && echo kept || rm -f \"$new\"; }; } 2>&1 | tail -n 1); "
    "test \"$why\" = kept || "
    "{ echo \"muster could not be put into $dir: $why\" >&2; exit 1; }; fi; "
    "exec \"$dir/muster\" ";

// Runs `ssh` with arguments that follow the socket paths' prefix, the time to keep connections, and
// the maximum path length. The path names the host that ssh's configuration currently resolves to,
// since a name may mean another machine or user from one command to the next.
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

// Leaves room for "user@host:port".
constexpr std::size_t kMaxPrefix = kMaxControlPath - 30;

// Free of characters that ssh expands in a path.
bool IsPlain(absl::string_view path) {
  return path.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
             "/._-") == absl::string_view::npos;
}

bool IsOwnFolder(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & 077) == 0 &&
         ::access(path.c_str(), W_OK) == 0;
}

// Identifies this process's namespaces, control group and limits.
std::string Surroundings() {
  std::string text;
  for (const char* const kind : {"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"}) {
    std::array<char, 64> name{};
    const std::string link = absl::StrCat("/proc/self/ns/", kind);
    // Kernels without this kind of namespace have no link; an empty name is equal for all.
    [[maybe_unused]] const ssize_t size = ::readlink(link.c_str(), name.data(), name.size() - 1);
    absl::StrAppend(&text, name.data(), "\n");
  }
  for (const char* const name : {"cgroup", "limits", "oom_score_adj"}) {
    std::ifstream file(absl::StrCat("/proc/self/", name));
    text.append(std::istreambuf_iterator<char>(file), {});
  }
  std::array<char, HOST_NAME_MAX + 1> here{};
  ::gethostname(here.data(), here.size());
  absl::StrAppend(&text, ::getpriority(PRIO_PROCESS, 0), "\n", here.data());
  return text;
}

std::string Short(const std::string& text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  constexpr std::size_t kEnough = 6;
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), kEnough));
}

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

std::optional<KeptConnections> FindKeptConnections(std::chrono::milliseconds time,
                                                   const Environment& environment) {
  const bool is_worker = environment.contains(worker::env::kAgentId);
  if (time <= std::chrono::milliseconds::zero() || is_worker) return std::nullopt;
  const std::string runtime = GetOr(environment, "XDG_RUNTIME_DIR", "");
  std::vector<std::string> folders;
  if (IsOwnFolder(runtime)) folders.push_back(absl::StrCat(runtime, "/muster-ssh"));
  folders.push_back(absl::StrCat("/tmp/muster-ssh-", ::geteuid()));
  for (const std::string& folder : folders) {
    const std::string prefix = absl::StrCat(folder, "/", Short(Surroundings()), "-");
    if (!IsPlain(prefix) || prefix.size() > kMaxPrefix) continue;
    ::mkdir(folder.c_str(), 0700);
    if (!IsOwnFolder(folder)) return std::nullopt;
    // Rounded up, as ssh takes zero for no limit.
    return KeptConnections{.prefix = prefix, .time = std::chrono::ceil<std::chrono::seconds>(time)};
  }
  return std::nullopt;
}

}  // namespace muster::launcher
