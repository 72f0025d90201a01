#include "launcher/commands/commands.h"

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/program.h"
#include "launcher/cli/command_run.h"
#include "launcher/cli/flag_table.h"
#include "rendezvous/fronts/tcpstore_server.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/net/listening_socket.h"
#include "rendezvous/net/peer.h"
#include "rendezvous/net/process_descriptors.h"

namespace muster::launcher {
namespace {

using rendezvous::TcpStoreDialect;

constexpr char kStore[] = "muster store";

struct StoreArgs : base::CommandArgs {
  std::string host = "127.0.0.1";
  int port = -1;
  // A file descriptor to write "PORT\n" to, once connections are accepted; -1: none.
  int ready_fd = -1;
  std::optional<std::vector<std::string>> allowed;
  bool all_users = false;
  std::optional<TcpStoreDialect> legacy_dialect;

  absl::Status Complete(base::Variables) const {
    if (port >= 0) return absl::OkStatus();
    return absl::InvalidArgumentError("no port is named; give --port=PORT, or 0 for a free one");
  }
};

constexpr Word<std::optional<TcpStoreDialect>> kDialects[] = {
    {"auto", std::nullopt}, {"1.x", TcpStoreDialect::k1x}, {"2.1", TcpStoreDialect::k21}};

absl::StatusOr<std::vector<std::string>> ReadAddresses(absl::string_view text) {
  std::vector<std::string> addresses;
  for (const absl::string_view address : absl::StrSplit(text, ',')) {
    if (!rendezvous::ParseHostAddress(std::string(address))) {
      return absl::InvalidArgumentError(absl::StrCat(
          "is not a list of numeric addresses, such as 10.0.0.7: '", address, "' is none"));
    }
    addresses.emplace_back(address);
  }
  return addresses;
}

constexpr Flag kStoreFlags[] = {
    {.name = "--port",
     .value_name = "PORT",
     .help = "The TCP port to listen on; 0 takes a free one.",
     .set = Store<rendezvous::ParsePort, &StoreArgs::port>},
    {.name = "--host",
     .value_name = "ADDR",
     .help = "The address to listen on. Default: loopback. Anyone who can reach the port can read "
             "and write the store, and so run code in the workers that use it. On this machine "
             "only your own processes and root's may connect.",
     .default_text = "127.0.0.1",
     .set = Store<rendezvous::ParseHost, &StoreArgs::host>},
    {.name = "--allow",
     .value_name = "ADDR,...",
     .help = "The only addresses that may connect, as numbers.",
     .default_text = "all may",
     .set = Store<ReadAddresses, &StoreArgs::allowed>},
    {.name = "--all-users",
     .kind = Flag::Kind::kSwitch,
     .help =
         "Allow processes of all users of this machine, and of containers with their own network.",
     .set = Store<ReadSwitch, &StoreArgs::all_users>},
    {.name = "--legacy-dialect",
     .value_name = "auto|1.x|2.1",
     .help = "Which PyTorch before 2.2 connects, if any. Rarely needed, since nearly all requests "
             "show it.",
     .default_text = "auto",
     .set = Store<ReadWord<kDialects>, &StoreArgs::legacy_dialect>},
    {.name = "--ready-fd",
     .value_name = "FD",
     .help = "Write the port and a line feed to this file descriptor, and close it, once clients "
             "can connect.",
     .set = Store<ReadNumber, &StoreArgs::ready_fd>},
};

int FailToListen(const absl::Status& status) {
  return Fail(
      kStore,
      absl::StrCat(
          status.message(),
          status.code() == absl::StatusCode::kAlreadyExists
              ? "; stop the process using it, or choose another port; --port=0 takes a free one"
              : ""),
      kExitNodeFailed);
}

int Serve(const StoreArgs& config) {
  const rendezvous::Endpoint listen{config.host, static_cast<std::uint16_t>(config.port)};
  spdlog::set_default_logger(spdlog::stderr_logger_mt(kStore));
  spdlog::set_pattern(base::kLogPattern);
  std::signal(SIGPIPE, SIG_IGN);
  // Each client takes a descriptor, some take two. No other program is started, which would inherit
  // the limit.
  rendezvous::RaiseDescriptorLimit();

  boost::asio::io_context io(1);
  boost::asio::signal_set signals(io, SIGTERM, SIGINT);
  auto sockets = rendezvous::ListenAt(io, listen);
  if (!sockets.ok()) return FailToListen(sockets.status());
  const std::uint16_t port = rendezvous::PortOf(*sockets);

  rendezvous::TcpStoreServer server(
      io, {.own_user_only = !config.all_users,
           .for_other_users = "--all-users allows processes of all users of this machine",
           .legacy_dialect = config.legacy_dialect});
  server.AllowOnly(config.allowed);
  for (boost::asio::ip::tcp::acceptor& socket : *sockets) {
    const absl::Status status = server.Serve(socket.release());
    if (!status.ok()) return FailToListen(status);
  }
  signals.async_wait([&server](const boost::system::error_code&, int) { server.Close(); });
  std::fprintf(stderr, "serving a TCPStore on %s\n",
               rendezvous::ToString({config.host, port}).c_str());
  rendezvous::AnnounceReady(config.ready_fd, port);
  io.run();
  return kExitSuccess;
}

}  // namespace

base::Command StoreCommand() {
  return {.name = "store",
          .summary = "serve a store for torch.distributed on its own",
          .about =
              "Serves a store for torch.distributed (c10d's TCPStore, PyTorch 1.9 to today) "
              "until SIGTERM\nor SIGINT.\n",
          .end =
              "Exit codes: 0 it was asked to end; 2 the command line is wrong; 4 it cannot "
              "listen.\n",
          .flags = base::WithHelp({kStoreFlags}),
          .run = WithArgs<StoreArgs, Serve>};
}

}  // namespace muster::launcher
