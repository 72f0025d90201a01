#include "rendezvous/net/grpc_server.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <google/protobuf/stubs/logging.h>
#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <spdlog/spdlog.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

#include "rendezvous/core/values/limits.h"
#include "rendezvous/wire/first_byte.h"

namespace muster::rendezvous {

namespace {

absl::Status ThreadFailure(const std::error_code& code) {
  return absl::ResourceExhaustedError(
      absl::StrCat("start gRPC's threads: ", code.message(),
                   "; raise `ulimit -u` or the pids limit of the container"));
}

// Whether a low limit on threads applies to the user or to this process's control group (v1 or v2).
bool MayLackThreads() {
  constexpr rlim_t kPlenty = 4096;
  rlimit most = {};
  if (::getrlimit(RLIMIT_NPROC, &most) != 0 || most.rlim_cur < kPlenty) return true;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // ID:CONTROLLERS:PATH; version 2 leaves CONTROLLERS empty (man 7 cgroups).
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || (!parts[1].empty() && parts[1] != "pids")) continue;
    // The limits of all parent groups apply too.
    for (std::string path = parts[2]; !path.empty(); path.resize(path.rfind('/'))) {
      std::ifstream file(absl::StrCat("/sys/fs/cgroup/", parts[1], path, "/pids.max"));
      rlim_t limit = 0;
      // "max" is not a number.
      if (file >> limit && limit < kPlenty) return true;
      if (path.find('/') == std::string::npos) break;
    }
  }
  return false;
}

}  // namespace

absl::Status CheckThreads() {
  if (!MayLackThreads()) return absl::OkStatus();
  constexpr int kThreads = 12;
  absl::Status status;
  absl::Notification done;
  std::vector<std::thread> threads;
  try {
    while (threads.size() < kThreads) {
      threads.emplace_back([&done] { done.WaitForNotification(); });
    }
  } catch (const std::system_error& error) {
    status = ThreadFailure(error.code());
  }
  done.Notify();
  for (std::thread& thread : threads) thread.join();
  return status;
}

std::future<GrpcServer::Started> GrpcServer::StartAside(
    boost::asio::io_context& io, const Credentials& credentials, std::shared_ptr<CallGate> gate,
    grpc::CallbackGenericService& service, const Limits& most, std::function<void()> over) {
  if (absl::Status status = CheckThreads(); !status.ok()) {
    std::promise<Started> failed;
    failed.set_value(std::move(status));
    boost::asio::post(io, std::move(over));
    return failed.get_future();
  }
  // Here, because it changes the environment, which other threads may read later.
  InitGrpcRuntime();
  return std::async(std::launch::async,
                    [&io, &service, credentials, gate = std::move(gate), most,
                     over = std::move(over), stay = boost::asio::make_work_guard(io)]() mutable {
                      Started started = Start(io, credentials, std::move(gate), service, most);
                      boost::asio::post(io, std::move(over));
                      stay.reset();
                      return started;
                    });
}

GrpcServer::Started GrpcServer::Start(boost::asio::io_context& io, const Credentials& credentials,
                                      std::shared_ptr<CallGate> gate,
                                      grpc::CallbackGenericService& service, const Limits& most) {
  InitGrpcRuntime();
  if (absl::Status fit = credentials.UseForServer(); !fit.ok()) return fit;
  std::unique_ptr<GrpcServer> server(new GrpcServer(io));
  grpc::ServerBuilder builder;
  // We accept the connections, so that another protocol can share the port.
  Credentials::Server ports = credentials.ForServer(std::move(gate));
  for (auto& port : ports.ports) {
    server->ports_.push_back(builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, std::move(port)));
  }
  server->port_for_ = std::move(ports.port_for);
  CallGate::Configure(builder);
  // Clients ping a silent server (daemon_channel.cc); the default would treat that as abuse and
  // disconnect them.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 500);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                             static_cast<int>(limits::kIdleSeconds.most) * 1000);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             static_cast<int>(limits::kSilentSeconds.most) * 1000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, static_cast<int>(most.streams));
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE,
                             static_cast<int>(limits::kMetadataBytes.most));
  // Otherwise every keep-alive triggers a ping that measures bandwidth, which small messages do not
  // need.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE,
                             static_cast<int>(limits::kReadBytes.most));
  if (most.window_bytes != 0) {
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
                               static_cast<int>(most.window_bytes));
  }
  builder.SetMaxReceiveMessageSize(static_cast<int>(limits::kMessageBytes.most));
  builder.RegisterCallbackGenericService(&service);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr) {
    return absl::UnavailableError("gRPC could not start its server");
  }
  try {
    server->hands_over_ = std::thread([&loop = server->handing_over_] {
      const auto work = boost::asio::make_work_guard(loop);
      loop.run();
    });
  } catch (const std::system_error& error) {
    return ThreadFailure(error.code());
  }
  return server;
}

GrpcServer::GrpcServer(boost::asio::io_context& io) : io_(io) {}

GrpcServer::~GrpcServer() = default;

void GrpcServer::Take(boost::asio::ip::tcp::socket connection) {
  boost::asio::post(handing_over_, [this, fd = connection.release()] {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.fd = fd;
    ports_[PortFor(fd)]->HandleNewConnection(&parameters);
  });
}

std::size_t GrpcServer::PortFor(int fd) const {
  if (port_for_ == nullptr) return 0;
  std::array<char, kMostTlsRecordBytes> record;
  const ssize_t size = ::recv(fd, record.data(), record.size(), MSG_PEEK | MSG_DONTWAIT);
  const std::string_view name =
      ServerNameIn({record.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))});
  return port_for_({name.data(), name.size()});
}

void GrpcServer::Stop(std::function<void()> stopped) {
  // grpc::Server::Shutdown waits for every call to end, and calls end on the loop: so it runs on
  // another thread. The loop must not run dry meanwhile.
  auto work = boost::asio::make_work_guard(io_);
  shutdown_ = std::thread([this, stopped = std::move(stopped), work = std::move(work)] {
    // After all pending work.
    boost::asio::post(handing_over_, [this] { handing_over_.stop(); });
    hands_over_.join();
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    // The callback may destroy this.
    boost::asio::post(io_, [this, stopped] {
      shutdown_.join();
      stopped();
    });
  });
}

void InitGrpcRuntime() {
  static const bool done = [] {
    gpr_set_log_function([](gpr_log_func_args* args) { spdlog::debug("grpc: {}", args->message); });
    // Protobuf's default handler writes to stderr from any thread, and blocks if no one reads it:
    // two messages that are not UTF-8 would hang gRPC's threads for good.
    google::protobuf::SetLogHandler(
        [](google::protobuf::LogLevel, const char*, int, const std::string& message) {
          spdlog::debug("protobuf: {}", message);
        });
    // By default channels are polled every five seconds, for applications that do not wait on their
    // calls; our stream always waits. This is the only way to turn that off. Workers do not inherit
    // it, as their environment was read before.
    setenv("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "0", 0);
    // gRPC 1.51 has no other setting that excludes TLS 1.2 and earlier: of their ciphers this
    // offers only one for pre-shared keys, which neither end has.
    setenv("GRPC_SSL_CIPHER_SUITES", "PSK-AES128-GCM-SHA256", 1);
    // gRPC's locks are Abseil's. Debian builds Abseil with deadlock detection: a graph of all
    // locks, updated under one global lock.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    // Never undone: with its last channel gRPC would stop its threads, and hang on one that it
    // could not start because of a system limit (1.51, timer_manager.cc).
    grpc_init();
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace muster::rendezvous
