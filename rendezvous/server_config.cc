#include "rendezvous/server_config.h"

#include <algorithm>
#include <utility>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "base/version.h"

namespace muster::rendezvous {

std::variant<ServerConfig, EarlyExit> ParseServerConfig(std::vector<std::string> arguments) {
  ServerConfig config;
  std::string listen = ToString(config.listen);
  int drain_seconds = static_cast<int>(config.drain_timeout.count());

  CLI::App app{
      "musterd: the rendezvous of Muster's jobs. Agents started with "
      "`muster run --rdzv-endpoint=HOST:PORT` meet here."};
  app.set_version_flag("--version", absl::StrCat("musterd ", base::kVersion));
  app.add_option("--listen", listen,
                 "HOST:PORT to listen on; port 0 takes a free one. Loopback unless you name "
                 "another address: whoever reaches the port can join any job")
      ->type_name("HOST:PORT")
      ->capture_default_str();
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
         "program that is on disk now. Without a directory all is forgotten")
      ->type_name("DIR");
  app.add_option(
         "--drain-timeout", drain_seconds,
         "without --state-dir: seconds that SIGTERM waits for running jobs to end before it "
         "closes them")
      ->type_name("SECONDS")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--log-level", config.log_level, "trace, debug, info, warning, error or off")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "off"}))
      ->capture_default_str();

  try {
    std::reverse(arguments.begin(), arguments.end());
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    return EarlyExit{0, app.help()};
  } catch (const CLI::CallForVersion& version) {
    return EarlyExit{0, absl::StrCat(version.what(), "\n")};
  } catch (const CLI::ParseError& error) {
    return EarlyExit{2, absl::StrCat("musterd: ", error.what(), "; see musterd --help\n")};
  }

  const absl::StatusOr<Endpoint> endpoint = ParseEndpoint(listen, kDefaultRendezvousPort);
  if (!endpoint.ok()) {
    return EarlyExit{2, absl::StrCat("musterd: --listen=", listen, " ",
                                     std::string(endpoint.status().message()), "\n")};
  }
  // As an unset variable in a unit file gives it: the jobs would be in memory only, unsaid.
  if (app.count("--state-dir") > 0 && config.state_dir.empty()) {
    return EarlyExit{2,
                     "musterd: --state-dir names no directory; name one, or leave the flag out\n"};
  }
  config.listen = *endpoint;
  config.drain_timeout = std::chrono::seconds(drain_seconds);
  return config;
}

}  // namespace muster::rendezvous
