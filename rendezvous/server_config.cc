#include "rendezvous/server_config.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/version.h"
#include "rendezvous/core/limits.h"
#include "rendezvous/wire/printable.h"

namespace muster::rendezvous {
namespace {

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

// What CLI11 would open, and wait for if it is a FIFO.
std::string MustBeFile(const std::string& path) {
  struct stat file = {};
  if (::stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode) || file.st_size > kLongestFile) {
    throw CLI::FileError::Missing(path);
  }
  return "";
}

EarlyExit Mistake(absl::string_view sentence) {
  return {2, absl::StrCat(
                 "musterd: ", OneLine({sentence.data(), sentence.size()}, kLongestSentence), "\n")};
}

std::string ConfigFileOf(const CLI::App& app) {
  const CLI::Option* const option = app.get_option("--config");
  // Not as<>(), which checks the file once more.
  return option->empty() ? "" : option->results().back();
}

// Only the command line can say these; a file that did would end the daemon at once, or name
// itself.
void AddConfigFile(CLI::App& app) {
  app.set_config(
         "--config", "",
         "read flags from this file, in TOML: a line such as state-dir = \"/var/lib/muster\" "
         "for each. Flags of the command line come before it. With a state-dir SIGHUP reads it "
         "again; one with a mistake is told in the log and changes nothing")
      ->type_name("FILE")
      ->check(MustBeFile, "");
  app.allow_config_extras(CLI::config_extras_mode::error);
  for (const char* flag : {"--help", "--version", "--print-limits", "--ready-fd", "--config"}) {
    app.get_option(flag)->configurable(false);
  }
}

EarlyExit ConfigFileMistake(const CLI::App& app, const CLI::ConfigError& error) {
  // "INI was not able to parse KEY", "KEY: This option is not allowed in a configuration file".
  absl::string_view key = error.what();
  absl::ConsumePrefix(&key, "INI was not able to parse ");
  key = key.substr(0, key.find(": "));
  const bool table = absl::ConsumeSuffix(&key, ".++");
  const std::string name = table ? absl::StrCat("[", key, "]") : std::string(key);
  return Mistake(absl::StrCat(ConfigFileOf(app), " sets '", OneLine(name, kLongestKey),
                              "', which is no setting of a file; its keys are flags without their "
                              "dashes, see musterd --help"));
}

}  // namespace

std::variant<ServerConfig, EarlyExit> ParseServerConfig(std::vector<std::string> arguments) {
  ServerConfig config;
  std::string listen = ToString(config.listen);
  std::string token_fd;
  int drain_seconds = static_cast<int>(config.drain_timeout.count());

  CLI::App app{
      "musterd: the rendezvous of Muster's jobs. Agents started with "
      "`muster run --rdzv-endpoint=HOST:PORT` meet here."};
  app.set_version_flag("--version", absl::StrCat("musterd ", base::kVersion));
  app.add_option("--listen", listen,
                 "HOST:PORT to listen on; port 0 takes a free one. Loopback unless you name "
                 "another address")
      ->type_name("HOST:PORT")
      ->take_last()
      ->capture_default_str();
  app.add_option("--token-file", config.token.file,
                 "the secret that agents and tools have to prove; connections are encrypted with "
                 "TLS 1.3. `muster token new` makes one. Default: MUSTER_TOKEN_FILE, then "
                 "$XDG_CONFIG_HOME/muster/token, then ~/.config/muster/token; on loopback it is "
                 "made if it is missing")
      ->type_name("FILE");
  app.add_option("--token-fd", token_fd, "the same, read from an open file descriptor")
      ->type_name("FD");
  app.add_option("--tokens", config.tokens,
                 "directory of the tokens of several tenants, a file for each that has the "
                 "tenant's name (`muster token new DIR/NAME`). A tenant sees his own jobs only. "
                 "Files may come, change and go while the daemon runs")
      ->type_name("DIR");
  const auto add_tls = [&](const char* flag, std::string& file, const char* help) {
    app.add_option(flag, file, help)->type_name("FILE");
  };
  add_tls("--tls-ca", config.token.tls.ca,
          "instead of a token: take whoever has a certificate of these authorities, in PEM. Also "
          "MUSTER_TLS_CA");
  add_tls("--tls-cert", config.token.tls.certificate,
          "the certificate to show, with what lies between it and the authority. It has to be for "
          "the name or the address by which agents reach this daemon. Also MUSTER_TLS_CERT");
  add_tls("--tls-key", config.token.tls.key,
          "its private key. The three files are read again when they change. Also MUSTER_TLS_KEY");
  app.add_flag("--insecure", config.token.insecure,
               "ask for no token and do not encrypt: whoever reaches the port can join, read and "
               "end any job. Also MUSTER_INSECURE=1");
  std::string http;
  app.add_option("--http", http,
                 "show jobs and figures over HTTP: a page at /, /metrics for Prometheus, "
                 "/api/v1/jobs, /healthz "
                 "and /readyz. A port alone is one of 127.0.0.1. Whoever asks for jobs or figures "
                 "has to send the token, or the one that `muster token metrics` makes of it")
      ->type_name("[HOST:]PORT");
  app.add_option("--ready-fd", config.ready_fd,
                 "write the port and a line feed to this file descriptor, and close it, once "
                 "agents can connect")
      ->type_name("FD")
      ->check(CLI::NonNegativeNumber);
  app.add_option(
         "--state-dir", config.state_dir,
         "directory to keep the jobs and their stores in (made if it is missing). The daemon "
         "is then a child of the process that you start, which starts it again when it dies, "
         "and goes on with its jobs: no worker notices. SIGHUP starts it again with the "
         "program and the --config that are on disk now. Without a directory all is forgotten")
      ->type_name("DIR");
  std::string state;
  EtcdConfig etcd;
  app.add_option(
         "--state", state,
         "etcd to keep the jobs and their stores in, instead of a directory. Several daemons with "
         "the same --state stand by for one another: one leads, and when its machine dies the next "
         "goes on within three seconds, and no worker notices. Agents name all of them: "
         "--rdzv-endpoint=a:29400,b:29400")
      ->type_name("etcd://HOST:PORT,.../PATH");
  add_tls("--etcd-ca", etcd.authority,
          "the authorities of etcd's certificates, in PEM; connections are encrypted. Without it "
          "they are not");
  add_tls("--etcd-cert", etcd.certificate, "the certificate to show to etcd");
  add_tls("--etcd-key", etcd.key, "its private key");
  app.add_option("--etcd-user", etcd.user, "user of etcd, where it has users")->type_name("NAME");
  add_tls("--etcd-password-file", etcd.password_file, "file with the user's password");
  app.add_option("--drain-timeout", drain_seconds,
                 "without --state-dir and --state: seconds that SIGTERM waits for running jobs to "
                 "end before it "
                 "closes them")
      ->type_name("SECONDS")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  bool print_limits = false;
  app.add_flag("--print-limits", print_limits,
               "print how much of the daemon's memory and time others may take, and why, and exit");
  app.add_option("--log-level", config.log_level, "trace, debug, info, warning, error or off")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "off"}))
      ->capture_default_str();

  AddConfigFile(app);

  try {
    std::reverse(arguments.begin(), arguments.end());
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    return EarlyExit{0, app.help()};
  } catch (const CLI::CallForVersion& version) {
    return EarlyExit{0, absl::StrCat(version.what(), "\n")};
  } catch (const CLI::ConfigError& error) {
    return ConfigFileMistake(app, error);
  } catch (const CLI::FileError&) {
    return Mistake(absl::StrCat("--config=", ConfigFileOf(app),
                                " is no file that can be read; name one, or leave the flag out"));
  } catch (const CLI::ParseError& error) {
    return Mistake(absl::StrCat(error.what(), "; see musterd --help"));
  }

  if (print_limits) return EarlyExit{0, LimitsTable()};

  const absl::StatusOr<Endpoint> endpoint = ParseEndpoint(listen, kDefaultRendezvousPort);
  if (!endpoint.ok()) {
    return Mistake(absl::StrCat("--listen=", listen, " ", endpoint.status().message()));
  }
  // As an unset variable in a unit file gives it: the jobs would be in memory only, unsaid.
  if (app.count("--state-dir") > 0 && config.state_dir.empty()) {
    return Mistake("--state-dir names no directory; name one, or leave the flag out");
  }
  if (app.count("--state") > 0) {
    auto read = ParseEtcdUrl(state);
    if (!read.ok()) return Mistake(absl::StrCat("--state=", state, " ", read.status().message()));
    if (!config.state_dir.empty()) {
      return Mistake("--state and --state-dir both say where jobs are kept; drop one of them");
    }
    etcd.url = read->url;
    etcd.members = std::move(read->members);
    etcd.root = std::move(read->root);
    if (absl::Status sound = CheckEtcdConfig(etcd); !sound.ok()) return Mistake(sound.message());
    config.etcd = std::move(etcd);
  } else {
    for (const char* flag :
         {"--etcd-ca", "--etcd-cert", "--etcd-key", "--etcd-user", "--etcd-password-file"}) {
      if (app.count(flag) == 0) continue;
      return Mistake(absl::StrCat(flag, " is for --state=etcd://HOST:PORT, which is not given"));
    }
  }
  if (app.count("--tokens") > 0) {
    if (config.tokens.empty()) {
      return Mistake("--tokens names no directory; name one, or leave the flag out");
    }
    for (const char* other :
         {"--token-file", "--token-fd", "--tls-ca", "--tls-cert", "--tls-key", "--insecure"}) {
      if (app.count(other) == 0) continue;
      return Mistake(absl::StrCat("--tokens is for several tenants, and ", other,
                                  " for one user; drop one of them"));
    }
  }
  if (app.count("--token-fd") > 0) {
    const auto fd = ReadTokenFdNumber(token_fd);
    if (!fd.ok()) {
      return Mistake(absl::StrCat("--token-fd=", token_fd, " ", fd.status().message()));
    }
    config.token.fd = *fd;
  }
  // Each daemon that the keeper starts would want to read it.
  if (config.token.fd >= 0 && config.remembers()) {
    return Mistake(
        "--token-fd can be read once, and with --state-dir or --state the daemon is started again "
        "when it "
        "dies; use --token-file");
  }
  auto token = CompleteTokenSource(config.token, [](const char* variable) {
    const char* const text = std::getenv(variable);
    return std::string(text == nullptr ? "" : text);
  });
  if (!token.ok()) {
    return Mistake(token.status().message());
  }
  config.token = *std::move(token);
  if (app.count("--http") > 0) {
    const auto at = ParseLocalEndpoint(http);
    if (!at.ok()) return Mistake(absl::StrCat("--http=", http, " ", at.status().message()));
    if (const std::string problem = WhyNotOverHttp(*at, config.token); !problem.empty()) {
      return Mistake(absl::StrCat("--http=", http, " ", problem));
    }
    config.http = *at;
  }
  if (config.etcd && endpoint->port == 0) {
    return Mistake(
        absl::StrCat("--listen=", listen,
                     " leaves the port open, and agents have to name all daemons; choose "
                     "a port"));
  }
  config.listen = *endpoint;
  config.drain_timeout = std::chrono::seconds(drain_seconds);
  config.config_file = ConfigFileOf(app);
  return config;
}

}  // namespace muster::rendezvous
