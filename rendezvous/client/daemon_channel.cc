#include "rendezvous/client/daemon_channel.h"

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/create_channel.h>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include "rendezvous/net/grpc_runtime.h"
#include "rendezvous/wire/knock.h"

namespace muster::rendezvous {
namespace {

// For one attempt to connect: a SYN that is lost is sent again after one second.
constexpr int kConnectAttemptMs = 2000;
// For all places.
constexpr std::chrono::seconds kPlaceAttempt(1);
// Between two looks at all of them.
constexpr std::chrono::milliseconds kBetweenRounds(50);

// One of them. For a daemon that stands still its kernel accepts connections; one that lives ends
// the connection of whoever knocks (wire/knock.h).
struct Attempt {
  boost::asio::ip::tcp::socket socket;
  std::array<char, kMaxKnockAnswer> answer{};
};

// All at once, as one whose machine is gone takes a second to be given up. Null: none answers.
const Endpoint* FirstToAnswer(const std::vector<Endpoint>& places) {
  using boost::asio::ip::tcp;
  boost::asio::io_context io(1);
  tcp::resolver resolver(io);
  const Endpoint* first = nullptr;
  std::vector<std::unique_ptr<Attempt>> attempts;
  for (const Endpoint& place : places) {
    boost::system::error_code error;
    const auto found = resolver.resolve(place.host, std::to_string(place.port), error);
    if (error) continue;
    attempts.push_back(std::make_unique<Attempt>(Attempt{tcp::socket(io)}));
    boost::asio::async_connect(
        attempts.back()->socket, found,
        [&io, &first, &place, attempt = attempts.back().get()](
            const boost::system::error_code& failed, const tcp::endpoint&) {
          if (failed) return;
          boost::system::error_code ignored;
          boost::asio::write(attempt->socket, boost::asio::buffer(&kFirstOfKnock, 1), ignored);
          attempt->socket.async_read_some(
              boost::asio::buffer(attempt->answer),
              // However it ended, somebody has ended it.
              [&io, &first, &place](const boost::system::error_code&, std::size_t) {
                first = &place;
                io.stop();
              });
        });
  }
  io.run_for(kPlaceAttempt);
  return first;
}

}  // namespace

std::string ChannelTarget(const Endpoint& endpoint) {
  // The scheme is spelled out, or a host called "unix" would be taken for one.
  return "dns:///" + ToString(endpoint);
}

Endpoint WhereItLeads(const Endpoint& endpoint, std::chrono::milliseconds patience) {
  const std::vector<Endpoint> places = EachOf(endpoint);
  if (places.size() == 1) return endpoint;
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    if (const Endpoint* const place = FirstToAnswer(places)) return *place;
    if (std::chrono::steady_clock::now() >= end) return places.front();
    // One of them takes over within seconds; nothing tells when.
    std::this_thread::sleep_for(kBetweenRounds);
  }
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
