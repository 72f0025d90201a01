#include "launcher/commands/rendezvous_args.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/seconds.h"
#include "rendezvous/core/names.h"
#include "worker/env_names.h"

namespace muster::launcher {
namespace {

constexpr char kEndpoint[] = "--rdzv-endpoint";
constexpr char kRunId[] = "--rdzv-id";
constexpr char kTimeout[] = "--timeout";
constexpr char kTokenFile[] = "--token-file";
constexpr char kTokenFd[] = "--token-fd";
constexpr char kInsecure[] = "--insecure";
constexpr char kTlsCa[] = "--tls-ca";
constexpr char kTlsCert[] = "--tls-cert";
constexpr char kTlsKey[] = "--tls-key";

// What stands on the command line.
struct Scanned {
  bool help = false;
  bool json = false;
  bool watch = false;
  bool insecure = false;
  std::set<std::string> switches;
  std::map<std::string, std::string> values;  // by flag
  std::vector<std::string> operands;
};

bool IsFlag(absl::string_view arg) {
  return arg.size() > 1 && arg[0] == '-' && !absl::ascii_isdigit(arg[1]);
}

bool Has(const std::vector<std::string>& names, absl::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool TakesValue(absl::string_view name, const RendezvousArgsTaken& taken) {
  return name == kEndpoint || name == kRunId || name == kTokenFile || name == kTokenFd ||
         name == kTlsCa || name == kTlsCert || name == kTlsKey ||
         (name == kTimeout && taken.timeout) || Has(taken.values, name);
}

// With dashes, and in full.
std::string NameOf(absl::string_view arg, const RendezvousArgsTaken& taken) {
  const std::string name = absl::StrReplaceAll(arg.substr(0, arg.find('=')), {{"_", "-"}});
  const auto full = taken.short_names.find(name);
  return full == taken.short_names.end() ? name : full->second;
}

absl::Status Unknown(absl::string_view arg) {
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown flag '", arg, "'; put -- in front of a key or value that begins with '-'"));
}

absl::StatusOr<Scanned> Scan(const std::vector<std::string>& args,
                             const RendezvousArgsTaken& taken) {
  Scanned scanned;
  for (std::size_t next = 0; next < args.size(); ++next) {
    const absl::string_view arg = args[next];
    if (arg == "--") {
      scanned.operands.insert(scanned.operands.end(), args.begin() + next + 1, args.end());
      break;
    }
    if (!IsFlag(arg)) {
      scanned.operands.emplace_back(arg);
      continue;
    }
    const std::size_t equals = arg.find('=');
    const std::string name = NameOf(arg, taken);
    if (arg == "--help" || arg == "-h") {
      scanned.help = true;
    } else if (arg == "--json" && taken.json) {
      scanned.json = true;
    } else if (arg == "--watch" && taken.watch) {
      scanned.watch = true;
    } else if (equals == absl::string_view::npos && Has(taken.switches, name)) {
      scanned.switches.insert(name);
    } else if (arg == kInsecure) {
      scanned.insecure = true;
    } else if (!TakesValue(name, taken)) {
      return Unknown(arg.substr(0, equals));
    } else if (equals != absl::string_view::npos) {
      scanned.values[name] = std::string(arg.substr(equals + 1));
    } else if (next + 1 < args.size()) {
      scanned.values[name] = args[++next];
    } else {
      return absl::InvalidArgumentError(absl::StrCat("'", arg, "' needs a value"));
    }
  }
  return scanned;
}

// What the flags and the environment say of the token.
absl::StatusOr<rendezvous::TokenSource> TokenOf(const Scanned& scanned,
                                                const Environment& environment) {
  rendezvous::TokenSource token{.insecure = scanned.insecure};
  for (const auto& [flag, file] : {std::pair<const char*, std::string*>{kTokenFile, &token.file},
                                   {kTlsCa, &token.tls.ca},
                                   {kTlsCert, &token.tls.certificate},
                                   {kTlsKey, &token.tls.key}}) {
    const auto found = scanned.values.find(flag);
    if (found != scanned.values.end()) *file = found->second;
  }
  if (const auto fd = scanned.values.find(kTokenFd); fd != scanned.values.end()) {
    const auto number = rendezvous::ReadTokenFdNumber(fd->second);
    if (!number.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(kTokenFd, "=", fd->second, " ", number.status().message()));
    }
    token.fd = *number;
  }
  return rendezvous::CompleteTokenSource(
      std::move(token), [&](const char* variable) { return GetOr(environment, variable, ""); });
}

// A text and where it comes from, to name it by.
struct Given {
  std::string text;
  std::string source;
};

Given Find(const Scanned& scanned, const char* flag, const Environment& environment,
           const std::vector<std::string>& variables) {
  if (const auto found = scanned.values.find(flag); found != scanned.values.end()) {
    return {found->second, absl::StrCat(flag, "=", found->second)};
  }
  for (const std::string& variable : variables) {
    const std::string value = GetOr(environment, variable, "");
    if (!value.empty()) {
      return {value, absl::StrCat("environment variable ", variable, "=", value)};
    }
  }
  return {};
}

// Empty: no job is named.
absl::StatusOr<std::string> RunIdOf(const Scanned& scanned, const RendezvousArgsTaken& taken,
                                    const Environment& environment) {
  std::string run_id =
      Find(scanned, kRunId, environment, {worker::env::kRunId, "PET_RDZV_ID"}).text;
  if (taken.job && !scanned.operands.empty()) {
    const std::string& job = scanned.operands.front();
    if (scanned.operands.size() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("unexpected argument '", scanned.operands[1], "': one job can be named"));
    }
    const auto flag = scanned.values.find(kRunId);
    if (flag != scanned.values.end() && flag->second != job) {
      return absl::InvalidArgumentError(absl::StrCat("two jobs are named, '", job, "' and ", kRunId,
                                                     "=", flag->second, "; name one"));
    }
    run_id = job;
  }
  if (run_id.empty()) return run_id;
  const absl::Status status = rendezvous::CheckName("run id", run_id);
  if (!status.ok()) return status;
  return run_id;
}

}  // namespace

absl::StatusOr<RendezvousArgs> ParseRendezvousArgs(const std::vector<std::string>& args,
                                                   const RendezvousArgsTaken& taken,
                                                   const Environment& environment) {
  absl::StatusOr<Scanned> scanned = Scan(args, taken);
  if (!scanned.ok()) return scanned.status();
  RendezvousArgs result;
  // Help is there for those whose environment is broken, too.
  if (scanned->help) {
    result.help = true;
    return result;
  }
  result.json = scanned->json;
  result.watch = scanned->watch;
  result.switches = std::move(scanned->switches);
  for (const std::string& name : taken.values) {
    const auto value = scanned->values.find(name);
    if (value != scanned->values.end()) result.values.insert(*value);
  }
  if (!taken.job) result.operands = std::move(scanned->operands);

  const Given endpoint = Find(*scanned, kEndpoint, environment,
                              {worker::env::kRendezvousEndpoint, "PET_RDZV_ENDPOINT"});
  if (endpoint.text.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no rendezvous is named; give --rdzv-endpoint=HOST:PORT, as for `muster run` "
                     "(a worker of a job that has one finds it in ",
                     worker::env::kRendezvousEndpoint, ")"));
  }
  const auto parsed = rendezvous::ParseEndpoints(endpoint.text, rendezvous::kDefaultRendezvousPort);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(endpoint.source, " ", parsed.status().message()));
  }
  if (parsed->port == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(endpoint.source, " has port 0, which nobody can connect to"));
  }
  result.endpoint = *parsed;

  absl::StatusOr<std::string> run_id = RunIdOf(*scanned, taken, environment);
  if (!run_id.ok()) return run_id.status();
  result.run_id = *std::move(run_id);

  auto token = TokenOf(*scanned, environment);
  if (!token.ok()) return token.status();
  result.token = *std::move(token);

  if (const auto timeout = scanned->values.find(kTimeout); timeout != scanned->values.end()) {
    result.timeout = base::ParseSeconds(timeout->second);
    if (!result.timeout) {
      return absl::InvalidArgumentError(absl::StrCat(
          kTimeout, "=", timeout->second, " is not a number of seconds, such as 30 or 0.5"));
    }
  }
  return result;
}

absl::StatusOr<rendezvous::DaemonOptions> DaemonOf(const rendezvous::Endpoint& endpoint,
                                                   const rendezvous::TokenSource& source) {
  auto credentials = rendezvous::FindCredentials(source, endpoint, rendezvous::Role::kTool);
  if (!credentials.ok()) return credentials.status();
  return rendezvous::DaemonOptions{.endpoint = endpoint, .credentials = *std::move(credentials)};
}

const char kTokenHelp[] =
    R"(  --token-file FILE          The token that the rendezvous was started with. Default:
                             MUSTER_TOKEN_FILE, then $XDG_CONFIG_HOME/muster/token, then
                             ~/.config/muster/token.
  --token-fd FD              The same, from an open file descriptor.
  --tls-ca, --tls-cert, --tls-key FILE
                             Instead of a token: certificates of your site's own authority. Default:
                             MUSTER_TLS_CA, MUSTER_TLS_CERT, MUSTER_TLS_KEY.
  --insecure                 The rendezvous was started with --insecure. Default: MUSTER_INSECURE.
)";

}  // namespace muster::launcher
