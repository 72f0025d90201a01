#include "rendezvous/client/daemon_channel.h"

#include <grpcpp/create_channel.h>

#include "rendezvous/net/grpc_runtime.h"

namespace muster::rendezvous {
namespace {

// For one attempt to connect: a SYN that is lost is sent again after one second.
constexpr int kConnectAttemptMs = 2000;

}  // namespace

std::string ChannelTarget(const Endpoint& endpoint) {
  // The scheme is spelled out, or a host called "unix" would be taken for one.
  return "dns:///" + ToString(endpoint);
}

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& target,
                                           const Credentials& credentials,
                                           const ChannelOptions& options) {
  InitGrpcRuntime();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // The cluster's own traffic, whatever http_proxy says.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A peer whose host has lost its power does not end a call: unanswered pings do.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS,
                   static_cast<int>(options.peer_silence.count()) / 3 * 2);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                   static_cast<int>(options.peer_silence.count()) / 3);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // No ping to measure the bandwidth with every message, as in server.cc.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectAttemptMs);
  arguments.SetMaxReceiveMessageSize(options.max_message_bytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                   static_cast<int>(options.first_reconnect.count()));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
                   static_cast<int>(options.longest_reconnect.count()));
  const Credentials::Client client = credentials.ForClient();
  const std::string& name = client.server_name.empty() ? options.host : client.server_name;
  if (credentials.secure() && !name.empty()) arguments.SetSslTargetNameOverride(name);
  return grpc::CreateCustomChannel(target, client.credentials, arguments);
}

}  // namespace muster::rendezvous
