#include "rendezvous/net/grpc_server.h"

#include <chrono>
#include <utility>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include "absl/status/status.h"
#include "rendezvous/core/limits.h"
#include "rendezvous/net/grpc_runtime.h"

namespace muster::rendezvous {

std::future<GrpcServer::Started> GrpcServer::StartAside(
    boost::asio::io_context& io, const Credentials& credentials, std::shared_ptr<CallGate> gate,
    grpc::CallbackGenericService& service, const Limits& most, std::function<void()> over) {
  // It changes the environment, which other threads may read later on.
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
  std::unique_ptr<GrpcServer> server(new GrpcServer(io));
  grpc::ServerBuilder builder;
  // Connections are accepted by us, so that another protocol can share the port.
  server->connections_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      credentials.ForServer(std::move(gate)));
  CallGate::Configure(builder);
  // Clients ping a silent server (daemon_channel.cc); one that takes this for abuse would cut them
  // off.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 500);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                             static_cast<int>(limits::kIdleSeconds.most) * 1000);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             static_cast<int>(limits::kSilentSeconds.most) * 1000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, static_cast<int>(most.streams));
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE,
                             static_cast<int>(limits::kMetadataBytes.most));
  // Every keep-alive would be answered with a ping that measures the bandwidth, which small
  // messages do not need.
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
  server->hands_over_ = std::thread([&loop = server->handing_over_] {
    const auto work = boost::asio::make_work_guard(loop);
    loop.run();
  });
  return server;
}

GrpcServer::GrpcServer(boost::asio::io_context& io) : io_(io) {}

GrpcServer::~GrpcServer() = default;

void GrpcServer::Take(boost::asio::ip::tcp::socket connection) {
  boost::asio::post(handing_over_, [this, fd = connection.release()] {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.fd = fd;
    connections_->HandleNewConnection(&parameters);
  });
}

void GrpcServer::Stop(std::function<void()> stopped) {
  // grpc::Server::Shutdown waits for every call to end, and calls end on the loop: so it waits
  // elsewhere. The loop must not run dry meanwhile.
  auto work = boost::asio::make_work_guard(io_);
  shutdown_ = std::thread([this, stopped = std::move(stopped), work = std::move(work)] {
    // Behind what it has been given.
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

}  // namespace muster::rendezvous
