#include "rendezvous/client/daemon_channel.h"

#include <algorithm>
#include <array>
#include <thread>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include "absl/strings/str_cat.h"

#include "base/text.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/client/probes.h"
#include "rendezvous/core/values/phrases.h"
#include "rendezvous/net/grpc_server.h"
#include "rendezvous/wire/liveness_probe.h"
#include "rendezvous/wire/wire.h"

namespace muster::rendezvous {
namespace {

// For one attempt to connect: a SYN that is lost is sent again after one second.
constexpr int kConnectAttemptMs = 2000;
// For all places.
constexpr std::chrono::seconds kPlaceAttempt(1);
// Between two looks at all of them.
constexpr std::chrono::milliseconds kBetweenRounds(50);

// One of them. For a daemon that stands still its kernel accepts connections; one that lives ends
// the connection of whoever probes (wire/liveness_probe.h).
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

constexpr char kNotMuster[] = "what answers there is not a Muster rendezvous";

// What has gone wrong between two ends of which one asks for another proof than the other gives
// (first_byte.h); trying again would not help.
void ReadTlsTrouble(ConnectionError& error, Credentials::Proof proof) {
  using Kind = ConnectionError::Kind;
  const auto says = [&error](const char* words) {
    return error.cause.find(words) != std::string::npos;
  };
  if (proof == Credentials::Proof::kSite && says("certificate verify failed")) {
    error = {.cause = "its certificate has expired, or was not issued by an authority in --tls-ca",
             .kind = Kind::kForeign};
  } else if (proof == Credentials::Proof::kSite && says("is not in peer certificate")) {
    error = {.cause = "its certificate is for a name other than the one it was contacted by",
             .kind = Kind::kForeign};
  } else if (says("certificate verify failed")) {
    error = {.cause =
                 "it was started with another token than the one here, or the clocks of the "
                 "two machines differ by hours",
             .kind = Kind::kForeign,
             .is_in_doubt = true};
  } else if (says("wrong version number") || says("packet length too long")) {
    // One of Muster's says insufficient_security.
    error = {.cause = kNotMuster, .kind = Kind::kForeign, .is_in_doubt = true};
  } else if (says("alert insufficient security")) {
    error = {.cause =
                 "it was started without a token; start it with the one here, or use none here "
                 "either (--insecure)",
             .kind = Kind::kForeign};
  } else if (says("http1.x server")) {
    error = {.cause = "it requires the token that it was started with",
             .kind = Kind::kForeign,
             .is_in_doubt = true};
  } else if (const std::size_t at = error.cause.find("Ssl handshake failed: ");
             at != std::string::npos) {
    error.cause =
        absl::StrCat("no secure connection could be made (", error.cause.substr(at + 22), ")");
  }
}

std::string WhyUnavailable(const ConnectionError& error) {
  return error.kind == ConnectionError::Kind::kRefused
             ? absl::StrCat("nothing is listening there (", error.cause, ")")
             : error.cause;
}

// It grows with the jobs of the daemon and their nodes.
constexpr int kMaxAnswerBytes = 256 << 20;

// Before the next place is looked for where the last one leads no longer.
constexpr std::chrono::milliseconds kBetweenAsking(50);

template <typename Request, typename Response>
using RendezvousMethod = grpc::Status (v1::Rendezvous::Stub::*)(grpc::ClientContext*,
                                                                const Request&, Response*);

template <typename Request, typename Response>
absl::StatusOr<Response> Ask(const DaemonOptions& daemon,
                             RendezvousMethod<Request, Response> method, const Request& request) {
  using std::chrono::milliseconds;
  const auto end = std::chrono::steady_clock::now() + daemon.patience;
  const auto left = [end] {
    const auto left = end - std::chrono::steady_clock::now();
    return std::max(std::chrono::duration_cast<milliseconds>(left), milliseconds(1));
  };
  const bool may_be_elsewhere = EachOf(daemon.endpoint).size() > 1;
  for (;;) {
    const auto stub = v1::Rendezvous::NewStub(
        OpenChannel(ChannelTarget(FindLeader(daemon.endpoint, left())), daemon.credentials,
                    {.max_message_bytes = kMaxAnswerBytes}));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + left());
    Response response;
    const grpc::Status status = (stub.get()->*method)(&context, request, &response);
    if (status.ok()) return response;
    // The one that was found has just been followed by another, and does not listen for long.
    const bool again = status.error_code() == grpc::StatusCode::UNAVAILABLE && may_be_elsewhere &&
                       std::chrono::steady_clock::now() + kBetweenAsking < end;
    if (!again) return ExplainFailure(status, daemon);
    std::this_thread::sleep_for(kBetweenAsking);
  }
}

}  // namespace

std::string ChannelTarget(const Endpoint& endpoint) {
  // The scheme is spelled out, or a host called "unix" would be taken for one.
  return "dns:///" + ToString(endpoint);
}

Endpoint FindLeader(const Endpoint& endpoint, std::chrono::milliseconds patience) {
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

// What gRPC wraps around the cause is for those who debug gRPC: "failed to connect to all
// addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host: Connection
// refused".
ConnectionError ReadConnectionError(const grpc::Status& status, Credentials::Proof proof) {
  using Kind = ConnectionError::Kind;
  ConnectionError error{.cause = status.error_message()};
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return {.cause = kNotMuster, .kind = Kind::kForeign};
  }
  // A client whose token is accepted may still have no right to what it asks for.
  if (status.error_code() == grpc::StatusCode::PERMISSION_DENIED) {
    return {.cause = OneLine(error.cause, kMaxDaemonSentence), .kind = Kind::kForeign};
  }
  if (error.cause.starts_with("DNS resolution failed")) {
    error.kind = Kind::kUnresolved;
    error.cause =
        absl::StrCat("its name does not resolve", error.cause.substr(error.cause.rfind(": ")));
    return error;
  }
  for (const char* wrapping : {"last error: ", "UNKNOWN: ", "UNAVAILABLE: ",
                               "Failed to connect to remote host: ", "recvmsg:", "sendmsg:"}) {
    if (const std::size_t at = error.cause.find(wrapping); at != std::string::npos) {
      error.cause = error.cause.substr(at + std::char_traits<char>::length(wrapping));
    }
  }
  if (error.cause.find("Connection refused") != std::string::npos) error.kind = Kind::kRefused;
  ReadTlsTrouble(error, proof);
  // The kernel takes connections for a process that is stopped, or too busy to.
  if (error.cause.find("before receiving SETTINGS frame") != std::string::npos) {
    error.cause = "it accepts connections but does not answer";
  }
  if (error.cause.empty()) error.cause = "the connection ended";
  return error;
}

ConnectionError Recognized(ConnectionError error, const std::string& speaks) {
  error.is_in_doubt = false;
  if (speaks.empty()) return error;
  return {.cause = absl::StrCat(kNotMuster, ": ", speaks,
                                "; choose another port, or stop the process using this one"),
          .kind = ConnectionError::Kind::kForeign};
}

absl::Status ExplainFailure(const grpc::Status& status, const DaemonOptions& daemon) {
  const std::string where = absl::StrCat(ToString(daemon.endpoint), ": ");
  switch (status.error_code()) {
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return absl::UnavailableError(
          absl::StrCat(where, "no answer within ", base::Seconds(daemon.patience)));
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::UNIMPLEMENTED: {
      ConnectionError error = ReadConnectionError(status, daemon.credentials.proof());
      if (error.is_in_doubt) error = Recognized(error, ProbeListener(daemon.endpoint));
      return absl::UnavailableError(absl::StrCat(where, WhyUnavailable(error)));
    }
    default:
      return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                          absl::StrCat(where, OneLine(status.error_message(), kMaxDaemonSentence)));
  }
}

absl::StatusOr<JobSnapshot> DescribeJob(const DaemonOptions& daemon, const std::string& run_id) {
  v1::DescribeRequest request;
  request.set_run_id(run_id);
  const auto response = Ask(daemon, &v1::Rendezvous::Stub::Describe, request);
  if (!response.ok()) return response.status();
  return FromWire(*response);
}

absl::StatusOr<std::optional<ClockReading>> ReadDaemonClock(const DaemonOptions& daemon) {
  using std::chrono::milliseconds;
  const auto asked = std::chrono::steady_clock::now();
  const auto response = Ask(daemon, &v1::Rendezvous::Stub::List, v1::ListRequest());
  const auto took = std::chrono::steady_clock::now() - asked;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  if (!response.ok()) return response.status();
  if (!response->has_clock_ms()) return std::optional<ClockReading>();
  const auto here = std::chrono::duration_cast<milliseconds>(now - took / 2);
  return std::optional(ClockReading{.ahead = milliseconds(response->clock_ms()) - here,
                                    .uncertainty = std::chrono::ceil<milliseconds>(took / 2)});
}

absl::StatusOr<std::vector<JobSnapshot>> ListJobs(const DaemonOptions& daemon) {
  const auto response = Ask(daemon, &v1::Rendezvous::Stub::List, v1::ListRequest());
  if (!response.ok()) return response.status();
  std::vector<JobSnapshot> jobs;
  for (const v1::JobDescription& job : response->jobs()) jobs.push_back(FromWire(job));
  return jobs;
}

}  // namespace muster::rendezvous
