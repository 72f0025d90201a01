#include "rendezvous/server.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <spdlog/spdlog.h>
#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"
#include "rendezvous/fronts/grpc_rendezvous_front.h"
#include "rendezvous/fronts/grpc_store_front.h"
#include "rendezvous/grpc_runtime.h"

namespace muster::rendezvous {
namespace {

// A value of the store's, 1 MiB, and what comes with it; each front has limits of its own.
constexpr int kMaxMessageBytes = 4 << 20;

void LogTransition(const Transition& transition) {
  const std::string node = transition.node.empty() ? "" : " node=" + transition.node;
  spdlog::info("run={} round={}{} {}", transition.run_id, transition.round, node, transition.text);
}

// gRPC tells no more than that it could not listen, so the address is tried beforehand: the
// kernel's answer is the sentence that the user needs. AlreadyExists: the port is taken.
absl::Status TryAddress(const Endpoint& endpoint) {
  const std::string attempt = absl::StrCat("listen on ", ToString(endpoint), ": ");
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (error != 0) return absl::InvalidArgumentError(attempt + gai_strerror(error));
  absl::Status status;
  for (const addrinfo* address = found; address != nullptr && status.ok();
       address = address->ai_next) {
    const int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;  // an address family this kernel does not have
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    // Bound is enough: as it never listens, it is in the way of nobody who tries at the same time.
    if (bind(fd, address->ai_addr, address->ai_addrlen) != 0) {
      const std::string cause = attempt + std::strerror(errno);
      status =
          errno == EADDRINUSE ? absl::AlreadyExistsError(cause) : absl::UnavailableError(cause);
    }
    close(fd);
  }
  freeaddrinfo(found);
  return status;
}

}  // namespace

// What exists only while the server listens, in the order in which it depends on one another.
struct Server::Listener {
  Listener(boost::asio::io_context& io, Driver& driver)
      : rendezvous(io, driver),
        store(io, [&driver](std::string_view run_id) { return driver.FindStore(run_id); }) {}

  GrpcRendezvousFront rendezvous;
  GrpcStoreFront store;
  std::unique_ptr<grpc::Server> grpc;
  std::thread shutdown;  // joinable once Stop was called
  std::vector<std::function<void()>> when_stopped;
};

Server::Server(boost::asio::io_context& io) : io_(io), driver_(io, LogTransition) {}

Server::~Server() {
  if (listener_ == nullptr) return;
  bool stopped = false;
  Stop([&stopped] { stopped = true; });
  io_.restart();
  while (!stopped && io_.run_one() > 0) {
  }
}

absl::Status Server::Listen(const Endpoint& endpoint, const Credentials& credentials) {
  if (absl::Status status = TryAddress(endpoint); !status.ok()) return status;
  InitGrpcRuntime();
  auto listener = std::make_unique<Listener>(io_, driver_);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(ToString(endpoint), credentials.ForServer(), &port);
  // Linux would let two daemons share a port and deal the agents out between them.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Agents ping a silent daemon (grpc_client.cc); a daemon that takes this for abuse would cut them
  // off.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 500);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 5000);
  // Every keep-alive would be answered with a ping that measures the bandwidth, which small
  // messages do not need.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.RegisterService(&listener->rendezvous);
  builder.RegisterService(&listener->store);
  listener->grpc = builder.BuildAndStart();
  if (listener->grpc == nullptr || port == 0) {
    // Somebody may have been faster since.
    if (absl::Status status = TryAddress(endpoint); !status.ok()) return status;
    return absl::UnavailableError(
        absl::StrCat("listen on ", ToString(endpoint), ": gRPC could not start its server"));
  }
  listener_ = std::move(listener);
  // Agents in this process may outlast the listening.
  driver_.OnForgotten([this](const std::string& run_id) {
    if (listener_ != nullptr) listener_->store.DropStore(run_id);
  });
  port_ = static_cast<std::uint16_t>(port);
  return absl::OkStatus();
}

void Server::Drain(const std::string& why, std::function<void()> drained) {
  driver_.Drain(why);
  driver_.WhenIdle(std::move(drained));
}

void Server::Stop(std::function<void()> stopped) {
  if (listener_ == nullptr) {
    boost::asio::post(io_, std::move(stopped));
    return;
  }
  listener_->when_stopped.push_back(std::move(stopped));
  if (listener_->shutdown.joinable()) return;
  listener_->rendezvous.EndStreams();
  listener_->store.Close();
  port_ = 0;
  // grpc::Server::Shutdown waits for every call to end, and calls end on the loop: so it waits
  // elsewhere. The loop must not run dry meanwhile.
  auto work = boost::asio::make_work_guard(io_);
  listener_->shutdown = std::thread([this, work = std::move(work)] {
    listener_->grpc->Shutdown(std::chrono::system_clock::now());
    listener_->grpc->Wait();
    boost::asio::post(io_, [this] {
      listener_->shutdown.join();
      const std::vector<std::function<void()>> when_stopped = std::move(listener_->when_stopped);
      listener_.reset();
      // One of them may destroy this server.
      for (const std::function<void()>& stopped : when_stopped) stopped();
    });
  });
}

}  // namespace muster::rendezvous
