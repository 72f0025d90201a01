#include "rendezvous/etcd/etcd_members.h"

#include <algorithm>
#include <tuple>

#include <grpcpp/create_channel.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "rendezvous/net/grpc_server.h"

namespace muster::rendezvous::etcd {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Between two logins that are refused, twice as long each time: for each, etcd hashes the password,
// which it makes costly on purpose.
constexpr milliseconds kFirstLoginPause(200);
constexpr milliseconds kLongestLoginPause(5000);
// As long as usual a login is waited for at most. It goes on in etcd when it is given up, so that
// another one makes a busy machine slower still.
constexpr int kMostTimesForALogin = 64;

// 8 MiB of values are asked for at most (PageSize), and each has a key. What a watch tells comes in
// fragments of 1.5 MiB.
constexpr int kLargestAnswer = 16 << 20;

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& member, milliseconds patience,
                                         const EtcdCredentials& own) {
  InitGrpcRuntime();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetMaxReceiveMessageSize(kLargestAnswer);
  // A member whose host has lost its power does not end a watch; etcd allows a ping every 5 s.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 2'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A member that is back is found at once.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(patience.count()));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  if (own.authority.empty()) {
    credentials = grpc::InsecureChannelCredentials();
  } else {
    credentials = grpc::SslCredentials({.pem_root_certs = own.authority,
                                        .pem_private_key = own.key,
                                        .pem_cert_chain = own.certificate});
  }
  return grpc::CreateCustomChannel("dns:///" + member, credentials, arguments);
}

// Somebody has switched etcd's users off.
bool AsksForNoToken(const grpc::Status& end) {
  return absl::StrContains(end.error_message(), "authentication is not enabled");
}

// How many of the members have answered for the cluster.
std::size_t CountOf(const std::map<std::size_t, std::uint64_t>& answers, std::uint64_t cluster) {
  return static_cast<std::size_t>(
      std::count_if(answers.begin(), answers.end(),
                    [cluster](const auto& answer) { return answer.second == cluster; }));
}

// Whether connections that were made with one are as good with the other.
bool AreConnectedAlike(const EtcdCredentials& one, const EtcdCredentials& other) {
  return std::tie(one.authority, one.certificate, one.key) ==
         std::tie(other.authority, other.certificate, other.key);
}

}  // namespace

EtcdMembers::EtcdMembers(boost::asio::io_context& io, EtcdOptions options, Handlers handlers)
    : io_(io),
      options_(std::move(options)),
      handlers_(std::move(handlers)),
      credentials_(options_.credentials),
      login_patience_(options_.patience, kMostTimesForALogin),
      login_pause_(kFirstLoginPause, kLongestLoginPause) {
  Connect();
}

void EtcdMembers::Connect() {
  members_.clear();
  for (const std::string& name : options_.members) {
    const auto channel = [&] { return ChannelTo(name, options_.patience, credentials_); };
    const std::shared_ptr<grpc::Channel> shared = channel();
    members_.push_back({.kv = etcdserverpb::KV::NewStub(shared),
                        .large_kv = etcdserverpb::KV::NewStub(channel()),
                        .lease = etcdserverpb::Lease::NewStub(shared),
                        .watch = etcdserverpb::Watch::NewStub(shared),
                        .auth = etcdserverpb::Auth::NewStub(shared)});
  }
}

void EtcdMembers::RereadCredentials() {
  if (!options_.reread) return;
  absl::StatusOr<EtcdCredentials> read = options_.reread();
  if (!read.ok()) {
    if (unreadable_.IsDue(Clock::now()) && handlers_.trouble) {
      handlers_.trouble(absl::StrCat(std::string(read.status().message()),
                                     "; going on with what was read there before"));
    }
    return;
  }
  unreadable_.Over();
  if (*read == credentials_) return;
  const bool connects_anew = !AreConnectedAlike(*read, credentials_);
  credentials_ = *std::move(read);
  next_login_ = {};
  login_pause_.Reset();
  if (connects_anew) Connect();
}

EtcdMembers::~EtcdMembers() {
  for (auto& [number, cancel] : under_way_) cancel();
}

std::uint64_t EtcdMembers::IsUnderWay(std::function<void()> cancel) {
  under_way_[++last_number_] = std::move(cancel);
  return last_number_;
}

EtcdMembers::Asked EtcdMembers::Next(grpc::ClientContext& context) const {
  // A member that has lost the others says so, instead of leaving us to wait.
  context.AddMetadata("hasleader", "true");
  if (!token_.empty()) context.AddMetadata("token", token_);
  return {member_, token_};
}

void EtcdMembers::WithToken(std::function<void(const absl::Status&)> go) {
  if (credentials_.user.empty() || !token_.empty()) return go(absl::OkStatus());
  if (await_token_.empty()) {
    RereadCredentials();
    if (Clock::now() < next_login_) return go(refusal_);
  }
  await_token_.push_back(std::move(go));
  if (await_token_.size() == 1) AskForToken();
}

void EtcdMembers::AskForToken() {
  const auto call = std::make_shared<
      UnaryCall<etcdserverpb::AuthenticateRequest, etcdserverpb::AuthenticateResponse>>(io_);
  call->request.set_name(credentials_.user);
  call->request.set_password(credentials_.password);
  using Service = etcdserverpb::Auth::StubInterface::async_interface;
  void (Service::*authenticate)(grpc::ClientContext*, const etcdserverpb::AuthenticateRequest*,
                                etcdserverpb::AuthenticateResponse*,
                                std::function<void(grpc::Status)>) = &Service::Authenticate;
  const milliseconds patience = login_patience_.now();
  Begin(call, *members_[member_].auth->async(), authenticate, patience,
        [this, call, patience, began = Clock::now(), member = member_](const grpc::Status& end) {
          const Clock::duration took = Clock::now() - began;
          if (end.ok()) token_ = call->answer.token();
          const bool is_done = end.ok() || AsksForNoToken(end);
          const absl::Status status = is_done ? absl::OkStatus() : Unanswered({member, ""}, end);
          if (!absl::IsUnavailable(status)) {
            login_patience_.Answered(took);
          } else if (took >= patience) {
            login_patience_.Longer(patience);
          }
          HearOfToken(status);
        });
}

void EtcdMembers::HearOfToken(absl::Status status) {
  // "authentication failed, invalid user ID or password"
  if (absl::IsInvalidArgument(status)) status = absl::PermissionDeniedError(status.message());
  if (absl::IsPermissionDenied(status)) {
    refusal_ = status;
    next_login_ = Clock::now() + login_pause_.Next();
  } else if (status.ok()) {
    login_pause_.Reset();
  }
  for (const auto& waiting : std::exchange(await_token_, {})) waiting(status);
}

void EtcdMembers::ForgetToken(const std::string& token) {
  if (token_ == token) token_.clear();
}

bool EtcdMembers::IsRefused(const grpc::Status& end, const std::string& token) {
  return !token.empty() && absl::IsUnauthenticated(FromWire(end));
}

grpc::Status EtcdMembers::Stranger() {
  return {grpc::StatusCode::UNAVAILABLE, "it belongs to another cluster than the others"};
}

// What a member says that was wiped and started alone is of nothing that is remembered: whoever
// followed it would be elected there, beside the leader. But an etcd that was built anew has most
// of the members.
bool EtcdMembers::IsOurs(const Asked& asked, const etcdserverpb::ResponseHeader& header) {
  const std::uint64_t cluster = header.cluster_id();
  if (cluster == 0) return true;
  if (cluster_ == 0) {
    first_answers_[asked.member] = cluster;
    Settle(cluster);
    if (cluster_ == 0) return false;
  }
  if (cluster == cluster_) {
    strangers_.clear();
    return true;
  }
  strangers_[asked.member] = cluster;
  if (2 * CountOf(strangers_, cluster) > members_.size()) {
    cluster_ = cluster;
    strangers_.clear();
    handlers_.replaced();
  } else {
    TellOfStranger(asked.member, cluster);
  }
  return false;
}

// The first answer may be that of the member that was wiped. Half are enough, as of two members
// that are named the other one may be away for good reasons.
void EtcdMembers::Settle(std::uint64_t cluster) {
  if (2 * CountOf(first_answers_, cluster) >= members_.size()) {
    cluster_ = cluster;
    for (const auto& [member, other] : first_answers_) {
      if (other != cluster) TellOfStranger(member, other);
    }
    first_answers_.clear();
  } else if (first_answers_.size() == members_.size() && strangeness_.IsDue(Clock::now()) &&
             handlers_.trouble) {
    handlers_.trouble(
        "the members in --state belong to different etcd clusters, with no majority in one; name "
        "the members of one cluster");
  }
}

void EtcdMembers::TellOfStranger(std::size_t member, std::uint64_t cluster) {
  if (!strangeness_.IsDue(Clock::now()) || !handlers_.trouble) return;
  handlers_.trouble(
      absl::StrCat(options_.members[member], " belongs to another etcd (cluster ",
                   absl::Hex(cluster), ") than the other members (cluster ", absl::Hex(cluster_),
                   "), and is ignored; remove it from --state, or make it rejoin their cluster"));
}

absl::Status EtcdMembers::Unanswered(const Asked& asked, const grpc::Status& end) {
  absl::Status status = FromWire(end);
  if (IsRefused(end, asked.token)) {
    // It has run out, or users have changed, or a member that was started again does not know it.
    ForgetToken(asked.token);
    return absl::UnavailableError(status.message());
  }
  if (status.ok()) status = absl::UnavailableError("etcd: the stream has ended");
  if (!absl::IsUnavailable(status)) return status;
  // Of calls beside one another that it does not answer, the first has said so.
  const bool is_news = asked.member == member_;
  if (is_news) member_ = (member_ + 1) % members_.size();
  handlers_.silent(asked.member, status);
  if (!is_news) return status;
  RereadCredentials();
  ++unanswered_;
  if (unanswered_ >= members_.size() && silence_.IsDue(Clock::now()) && handlers_.trouble) {
    // One that has lost its data and started alone could be followed otherwise.
    const std::string how_many =
        first_answers_.empty()
            ? "no member of etcd answers"
            : absl::StrCat(first_answers_.size(), " of ", members_.size(),
                           " members in --state answer, and half of them have to before one is "
                           "followed");
    handlers_.trouble(absl::StrCat(how_many, "; the last, ", options_.members[asked.member], ": ",
                                   std::string(status.message())));
  }
  return status;
}

}  // namespace muster::rendezvous::etcd
