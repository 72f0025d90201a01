#include "launcher/commands/store.h"

#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>
#include <variant>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>

#include "absl/strings/str_cat.h"
#include "base/log_pattern.h"
#include "launcher/commands/answer.h"
#include "launcher/report/exit_code.h"
#include "rendezvous/fronts/tcpstore_server.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/net/host_address.h"
#include "rendezvous/net/listening_socket.h"
#include "rendezvous/net/ready_fd.h"

namespace muster::launcher {
namespace {

struct StoreConfig {
  rendezvous::Endpoint listen{"127.0.0.1", 0};
  // A file descriptor to write "PORT\n" to, once connections are accepted; -1: none.
  int ready_fd = -1;
  std::optional<std::vector<std::string>> allowed;
  std::optional<rendezvous::TcpStoreDialect> legacy_dialect;
};

// The program has nothing to do but print `text`, to stdout on success and else to
// stderr.
struct EarlyExit {
  int exit_code = kExitSuccess;
  std::string text;
};

EarlyExit StoreMistake(const std::string& sentence) {
  return {kExitBadInput, absl::StrCat("muster store: ", sentence, "; see muster store --help\n")};
}

std::variant<StoreConfig, EarlyExit> Parse(std::vector<std::string> args) {
  StoreConfig config;
  std::string host = config.listen.host;
  std::vector<std::string> allowed;
  std::string dialect = "auto";

  CLI::App app{
      "Serves a store for torch.distributed (c10d's TCPStore, PyTorch 1.9 to today) until SIGTERM "
      "or SIGINT.",
      "muster store"};
  app.add_option("--port", config.listen.port, "TCP port to listen on; 0 takes a free one")
      ->type_name("PORT")
      ->required();
  app.add_option("--host", host,
                 "address to listen on. Loopback unless you name another: whoever reaches the port "
                 "can read and write the store, and so run code in the workers that use it")
      ->type_name("ADDR")
      ->capture_default_str();
  app.add_option("--allow", allowed, "numeric addresses that may connect; everybody unless given")
      ->type_name("ADDR,...")
      ->delimiter(',');
  app.add_option(
         "--legacy-dialect", dialect,
         "auto, 1.x or 2.1: which PyTorch before 2.2 connects, if any. Rarely needed, since "
         "nearly all requests show it")
      ->type_name("VERSION")
      ->check(CLI::IsMember({"auto", "1.x", "2.1"}))
      ->capture_default_str();
  app.add_option("--ready-fd", config.ready_fd,
                 "write the port and a line feed to this file descriptor, and close it, once "
                 "clients can connect")
      ->type_name("FD")
      ->check(CLI::NonNegativeNumber);

  try {
    std::reverse(args.begin(), args.end());
    app.parse(std::move(args));
  } catch (const CLI::CallForHelp&) {
    return EarlyExit{kExitSuccess, app.help()};
  } catch (const CLI::ParseError& error) {
    return StoreMistake(error.what());
  }

  const absl::StatusOr<std::string> parsed_host = rendezvous::ParseHost(host);
  if (!parsed_host.ok()) {
    return StoreMistake(
        absl::StrCat("--host=", host, " ", std::string(parsed_host.status().message())));
  }
  config.listen.host = *parsed_host;
  for (const std::string& address : allowed) {
    if (rendezvous::ParseHostAddress(address)) continue;
    return StoreMistake(
        absl::StrCat("--allow=", address, " is not a numeric address, such as 10.0.0.7"));
  }
  if (!allowed.empty()) config.allowed = std::move(allowed);
  if (dialect == "1.x") config.legacy_dialect = rendezvous::TcpStoreDialect::k1x;
  if (dialect == "2.1") config.legacy_dialect = rendezvous::TcpStoreDialect::k21;
  return config;
}

// Each client takes a file descriptor, some take two. This process starts no others, which would
// inherit the limit.
void AllowManyConnections() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

int FailToListen(const absl::Status& status) {
  std::fprintf(stderr, "muster store: %s%s\n", std::string(status.message()).c_str(),
               status.code() == absl::StatusCode::kAlreadyExists
                   ? "; stop who listens there, or choose another port; --port=0 takes a free one"
                   : "");
  return kExitNodeFailed;
}

}  // namespace

int StoreCommand(const std::vector<std::string>& args) {
  const auto parsed = Parse(args);
  if (const auto* exit = std::get_if<EarlyExit>(&parsed)) {
    if (exit->exit_code == kExitSuccess) return Answer("muster store", exit->text);
    std::fputs(exit->text.c_str(), stderr);
    return exit->exit_code;
  }
  const StoreConfig& config = std::get<StoreConfig>(parsed);
  spdlog::set_default_logger(spdlog::stderr_logger_mt("muster store"));
  spdlog::set_pattern(base::kLogPattern);
  std::signal(SIGPIPE, SIG_IGN);
  AllowManyConnections();

  boost::asio::io_context io(1);
  boost::asio::signal_set signals(io, SIGTERM, SIGINT);
  auto sockets = rendezvous::ListenAt(io, config.listen);
  if (!sockets.ok()) return FailToListen(sockets.status());
  const std::uint16_t port = rendezvous::PortOf(*sockets);

  rendezvous::TcpStoreServer server(io, {.legacy_dialect = config.legacy_dialect});
  server.AllowOnly(config.allowed);
  for (boost::asio::ip::tcp::acceptor& socket : *sockets) {
    const absl::Status status = server.Serve(socket.release());
    if (!status.ok()) return FailToListen(status);
  }
  signals.async_wait([&server](const boost::system::error_code&, int) { server.Close(); });
  std::fprintf(stderr, "serving a TCPStore on %s\n",
               rendezvous::ToString({config.listen.host, port}).c_str());
  rendezvous::AnnounceReady(config.ready_fd, port);
  io.run();
  return kExitSuccess;
}

}  // namespace muster::launcher
