#include "rendezvous/server_config.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <utility>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/cli/command.h"
#include "base/cli/readers.h"
#include "base/version.h"
#include "rendezvous/core/values/limits.h"
#include "rendezvous/core/values/phrases.h"
#include "rendezvous/net/find_credentials.h"

namespace muster::rendezvous {

// What the command line and the file say.
struct ServerArgs : base::CommandArgs {
  ServerConfig config;
  bool version = false;
  bool print_limits = false;
  std::string state;
  EtcdConfig etcd;
  std::string http;
};

ServerConfig& PartOf(base::CommandArgs& args, ServerConfig*) {
  return static_cast<ServerArgs&>(args).config;
}

namespace {

using base::Apply;
using base::Flag;
using base::Problem;
using base::ReadNumber;
using base::ReadSwitch;
using base::ReadText;
using base::Store;

std::string LimitsTable() {
  std::string table;
  for (const Limit* limit : limits::kAll) {
    absl::StrAppendFormat(&table, "%12d  %s: %s\n", limit->most, std::string(limit->of),
                          std::string(limit->why));
  }
  return table;
}

// Settings are a few lines; what is longer is another file.
constexpr off_t kLongestFile = 1 << 20;
// Of a mistake's sentence, which may quote a file of any kind.
constexpr std::size_t kLongestSentence = 2000;
constexpr std::size_t kLongestKey = 60;

// What is opened without waiting: no FIFO.
bool IsReadableFile(const std::string& path) {
  struct stat file = {};
  return ::stat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode) && file.st_size <= kLongestFile;
}

EarlyExit Mistake(absl::string_view sentence) {
  return {2, absl::StrCat(
                 "musterd: ", OneLine({sentence.data(), sentence.size()}, kLongestSentence), "\n")};
}

absl::StatusOr<Endpoint> ReadListen(absl::string_view text) {
  return ParseEndpoint(text, kDefaultRendezvousPort);
}

// As an unset variable in a unit file gives it: the jobs would be in memory only, unsaid.
absl::StatusOr<std::string> ReadDirectory(absl::string_view text) {
  if (text.empty()) {
    return absl::InvalidArgumentError("is empty; name a directory, or leave the flag out");
  }
  return std::string(text);
}

absl::StatusOr<std::chrono::seconds> ReadWholeSeconds(absl::string_view text) {
  const auto seconds = base::ReadNumber(text);
  if (!seconds.ok()) return seconds.status();
  return std::chrono::seconds(*seconds);
}

absl::StatusOr<std::string> ReadLevel(absl::string_view text) {
  const std::vector<absl::string_view> levels = {"trace",   "debug", "info",
                                                 "warning", "error", "off"};
  if (absl::c_linear_search(levels, text)) return std::string(text);
  return base::NoSuchChoice(levels);
}

Problem SetHttp(absl::string_view text, ServerArgs& args) {
  const auto at = ParseLocalEndpoint(text);
  if (!at.ok()) return std::string(at.status().message());
  args.http = std::string(text);
  args.config.http = *at;
  return std::nullopt;
}

constexpr Flag kServerFlags[] = {
    {.name = "--listen",
     .value_name = "HOST:PORT",
     .help = "Where to listen; port 0 takes a free one. The default is loopback.",
     .default_text = "127.0.0.1:29400",
     .set = Store<ReadListen, &ServerConfig::listen>},
    {.name = "--token-file",
     .value_name = "FILE",
     .help = "The secret that agents and tools must have; connections are encrypted with TLS 1.3. "
             "`muster token new` creates one. On loopback it is created if missing.",
     .default_text = "MUSTER_TOKEN_FILE; $XDG_CONFIG_HOME/muster/token; ~/.config/muster/token",
     .set = Store<ReadText, &ServerConfig::token, &TokenSource::file>},
    {.name = "--token-fd",
     .value_name = "FD",
     .help = "The same, read from an open file descriptor.",
     .set = Store<ReadTokenFdNumber, &ServerConfig::token, &TokenSource::fd>},
    {.name = "--tokens",
     .value_name = "DIR",
     .help = "The directory of tenants' tokens, one file each, named after the tenant (`muster "
             "token new DIR/NAME`). A tenant sees only its own jobs. Files may be added, changed "
             "and removed while the daemon runs.",
     .set = Store<ReadDirectory, &ServerConfig::tokens>},
    {.name = "--tls-ca",
     .value_name = "FILE",
     .help = "Instead of a token: accept clients with a certificate of these authorities, in PEM.",
     .default_text = "MUSTER_TLS_CA",
     .set = Store<ReadText, &ServerConfig::token, &TokenSource::tls, &CertificateFiles::ca>},
    {.name = "--tls-cert",
     .value_name = "FILE",
     .help = "This daemon's certificate, with any intermediate ones. It must be for the name or "
             "address that agents use to reach this daemon.",
     .default_text = "MUSTER_TLS_CERT",
     .set =
         Store<ReadText, &ServerConfig::token, &TokenSource::tls, &CertificateFiles::certificate>},
    {.name = "--tls-key",
     .value_name = "FILE",
     .help = "Its private key. The three files are read again when they change.",
     .default_text = "MUSTER_TLS_KEY",
     .set = Store<ReadText, &ServerConfig::token, &TokenSource::tls, &CertificateFiles::key>},
    {.name = "--insecure",
     .kind = Flag::Kind::kSwitch,
     .help = "Require no token and do not encrypt: anyone who can reach the port can join, read "
             "and end any job.",
     .default_text = "MUSTER_INSECURE",
     .set = Store<ReadSwitch, &ServerConfig::token, &TokenSource::insecure>},
    {.name = "--http",
     .value_name = "[HOST:]PORT",
     .help = "Show jobs and figures over HTTP: a page at /, /metrics for Prometheus, /api/v1/jobs, "
             "/healthz and /readyz. A port alone means 127.0.0.1. Requests for jobs or figures "
             "must send the token, or the one that `muster token metrics` derives from it.",
     .set = Apply<SetHttp>},
    {.name = "--ready-fd",
     .value_name = "FD",
     .help =
         "Write the port and a line feed to this file descriptor, and close it, once agents can "
         "connect; a standby writes it too, and listens once it leads.",
     .set = Store<ReadNumber, &ServerConfig::ready_fd>},
    {.name = "--state-dir",
     .value_name = "DIR",
     .help = "The directory that keeps the jobs and their stores (created if missing). The daemon "
             "is then a child of the process that you start, which restarts it if it dies; it "
             "resumes its jobs, and no worker notices. SIGHUP restarts it with the program and the "
             "--config that are on disk now. Without a directory nothing is kept.",
     .set = Store<ReadDirectory, &ServerConfig::state_dir>},
    {.name = "--state",
     .value_name = "etcd://HOST:PORT,.../PATH",
     .help = "The etcd that keeps the jobs and their stores, instead of a directory. Several "
             "daemons with the same --state stand by for each other: one leads, and if its machine "
             "dies another takes over within three seconds; no worker notices. Agents name all of "
             "them: --rdzv-endpoint=a:29400,b:29400.",
     .set = Store<ReadText, &ServerArgs::state>},
    {.name = "--etcd-ca",
     .value_name = "FILE",
     .help = "The authorities of etcd's certificates, in PEM; connections are encrypted. Without "
             "it they are not.",
     .set = Store<ReadText, &ServerArgs::etcd, &EtcdConfig::authority>},
    {.name = "--etcd-cert",
     .value_name = "FILE",
     .help = "The certificate to show to etcd.",
     .set = Store<ReadText, &ServerArgs::etcd, &EtcdConfig::certificate>},
    {.name = "--etcd-key",
     .value_name = "FILE",
     .help = "Its private key.",
     .set = Store<ReadText, &ServerArgs::etcd, &EtcdConfig::key>},
    {.name = "--etcd-user",
     .value_name = "NAME",
     .help = "The etcd user, if authentication is enabled.",
     .set = Store<ReadText, &ServerArgs::etcd, &EtcdConfig::user>},
    {.name = "--etcd-password-file",
     .value_name = "FILE",
     .help = "The file with the user's password.",
     .set = Store<ReadText, &ServerArgs::etcd, &EtcdConfig::password_file>},
    {.name = "--drain-timeout",
     .value_name = "SECONDS",
     .help = "Without --state-dir and --state: seconds that SIGTERM waits for running jobs to end "
             "before it closes them.",
     .default_text = "30",
     .set = Store<ReadWholeSeconds, &ServerConfig::drain_timeout>},
    {.name = "--log-level",
     .value_name = "trace|debug|info|warning|error|off",
     .help = "How much is logged to stderr.",
     .default_text = "info",
     .set = Store<ReadLevel, &ServerConfig::log_level>},
    {.name = "--config",
     .value_name = "FILE",
     .help = "Read flags from this file, in TOML: a line such as state-dir = \"/var/lib/muster\" "
             "for each. Flags of the command line come before it. With a state-dir SIGHUP reads it "
             "again; a mistake in it is logged and changes nothing.",
     .set = Store<ReadText, &ServerConfig::config_file>},
    {.name = "--print-limits",
     .kind = Flag::Kind::kText,
     .help = "Print how much of the daemon's memory and time others may take, and why.",
     .set = Store<ReadSwitch, &ServerArgs::print_limits>},
    {.name = "--version",
     .kind = Flag::Kind::kText,
     .help = "Print the version.",
     .set = Store<ReadSwitch, &ServerArgs::version>},
};

base::Command ServerCommand() {
  return {
      .program = "musterd",
      .about =
          R"(The rendezvous of Muster's jobs. Agents started with `muster run --rdzv-endpoint=HOST:PORT` meet
here.
)",
      .flags = base::WithHelp({kServerFlags})};
}

// Only the command line can say these; a file that did would end the daemon at once, or name
// itself.
bool IsSetting(const Flag& flag) {
  return flag.kind != Flag::Kind::kText && flag.name != "--ready-fd" && flag.name != "--config";
}

// As it would be typed on the command line; nullopt: no flag takes such a value.
std::optional<std::string> TypedValue(const toml::node& value) {
  if (const auto* const text = value.as_string()) return text->get();
  if (const auto* const number = value.as_integer()) return absl::StrCat(number->get());
  if (const auto* const number = value.as_floating_point()) return absl::StrCat(number->get());
  if (const auto* const is_on = value.as_boolean()) return is_on->get() ? "true" : "false";
  return std::nullopt;
}

absl::Status ReadConfigFile(const base::Command& command, ServerArgs& args) {
  const std::string path = args.config.config_file;
  if (!IsReadableFile(path)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--config=", path, " is not a readable file; name one, or leave the flag out"));
  }
  const toml::parse_result file = toml::parse_file(path);
  if (!file) {
    const toml::parse_error& error = file.error();
    return absl::InvalidArgumentError(
        absl::StrCat(path, ", line ", error.source().begin.line,
                     ", is not TOML: ", std::string(error.description())));
  }
  const std::set<absl::string_view> typed = args.given;
  for (const auto& [key, value] : file.table()) {
    const std::string name(key.str());
    const auto flag = std::find_if(
        command.flags.begin(), command.flags.end(),
        [&](const Flag& one) { return one.name == absl::StrCat("--", name) && IsSetting(one); });
    if (flag == command.flags.end()) {
      const std::string shown = value.is_table() ? absl::StrCat("[", name, "]") : name;
      return absl::InvalidArgumentError(
          absl::StrCat(path, " sets '", OneLine(shown, kLongestKey),
                       "', which is not a setting; the keys are flags without their dashes, see "
                       "musterd --help"));
    }
    if (typed.contains(flag->name)) continue;
    const std::optional<std::string> text = TypedValue(value);
    if (!text) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, " sets '", name, "' to what is neither a string nor a number, true or false"));
    }
    if (const Problem problem = flag->set(*text, args)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": ", flag->name, "=", *text, " ", *problem));
    }
    args.given.insert(flag->name);
  }
  return absl::OkStatus();
}

absl::Status Contradiction(absl::string_view sentence) {
  return absl::InvalidArgumentError(sentence);
}

absl::Status CheckState(ServerArgs& args) {
  ServerConfig& config = args.config;
  if (absl::StartsWith(config.state_dir, "etcd://")) {
    return Contradiction(
        "--state-dir names a directory; for an etcd write --state=etcd://HOST:PORT/PATH");
  }
  if (!args.given.contains("--state")) {
    for (const char* flag :
         {"--etcd-ca", "--etcd-cert", "--etcd-key", "--etcd-user", "--etcd-password-file"}) {
      if (!args.given.contains(flag)) continue;
      return Contradiction(
          absl::StrCat(flag, " is for --state=etcd://HOST:PORT, which is not given"));
    }
    return absl::OkStatus();
  }
  auto read = ParseEtcdUrl(args.state);
  if (!read.ok()) {
    return Contradiction(
        absl::StrCat("--state=", WithoutUser(args.state), " ", read.status().message()));
  }
  if (!config.state_dir.empty()) {
    return Contradiction("--state and --state-dir both say where jobs are kept; drop one of them");
  }
  args.etcd.url = read->url;
  args.etcd.members = std::move(read->members);
  args.etcd.root = std::move(read->root);
  config.etcd = args.etcd;
  if (config.listen.port == 0) {
    return Contradiction(
        absl::StrCat("--listen=", ToString(config.listen),
                     " picks a random port, but agents must name all daemons; choose a port"));
  }
  return CheckEtcdConfig(args.etcd);
}

absl::Status CheckTokens(ServerArgs& args) {
  ServerConfig& config = args.config;
  if (args.given.contains("--tokens")) {
    for (const char* other :
         {"--token-file", "--token-fd", "--tls-ca", "--tls-cert", "--tls-key", "--insecure"}) {
      if (!args.given.contains(other)) continue;
      return Contradiction(absl::StrCat("--tokens is for several tenants, and ", other,
                                        " for one user; drop one of them"));
    }
  }
  // Each daemon that the keeper starts would want to read it.
  if (config.token.fd >= 0 && config.remembers()) {
    return Contradiction(
        "--token-fd can be read only once, but with --state-dir or --state the daemon may be "
        "restarted; use --token-file");
  }
  auto token = CompleteTokenSource(
      config.token, [](const char* variable) { return base::ReadVariable(variable); });
  if (!token.ok()) return token.status();
  config.token = *std::move(token);
  if (!config.http) return absl::OkStatus();
  const std::string problem = WhyNotOverHttp(*config.http, config.token);
  if (problem.empty()) return absl::OkStatus();
  return Contradiction(absl::StrCat("--http=", args.http, " ", problem));
}

}  // namespace

std::variant<ServerConfig, EarlyExit> ParseServerConfig(const std::vector<std::string>& arguments) {
  const base::Command command = ServerCommand();
  ServerArgs args;
  absl::Status status = base::ReadCommandLine(command, arguments, base::ReadVariable, args);
  if (status.ok() && args.asks_for_text) {
    return EarlyExit{0, args.help      ? base::HelpText(command)
                        : args.version ? absl::StrCat("musterd ", base::kVersion, "\n")
                                       : LimitsTable()};
  }
  if (status.ok() && args.given.contains("--config")) status = ReadConfigFile(command, args);
  if (status.ok()) status = CheckState(args);
  if (status.ok()) status = CheckTokens(args);
  if (!status.ok()) return Mistake(status.message());
  return args.config;
}

}  // namespace muster::rendezvous
