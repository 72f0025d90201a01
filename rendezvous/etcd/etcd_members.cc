#include "rendezvous/etcd/etcd_members.h"

#include <grpcpp/create_channel.h>

#include "absl/strings/str_cat.h"
#include "rendezvous/etcd/etcd_wire.h"
#include "rendezvous/net/grpc_runtime.h"

namespace muster::rendezvous::etcd {
namespace {

// 8 MiB of values are asked for at most (PageSize), and each has a key. What a watch tells comes in
// fragments of 1.5 MiB.
constexpr int kLargestAnswer = 16 << 20;

std::shared_ptr<grpc::Channel> ChannelTo(const EtcdOptions& options, const std::string& member) {
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
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(options.patience.count()));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  if (options.authority.empty()) {
    credentials = grpc::InsecureChannelCredentials();
  } else {
    credentials = grpc::SslCredentials({.pem_root_certs = options.authority,
                                        .pem_private_key = options.key,
                                        .pem_cert_chain = options.certificate});
  }
  return grpc::CreateCustomChannel("dns:///" + member, credentials, arguments);
}

}  // namespace

EtcdMembers::EtcdMembers(boost::asio::io_context& io, EtcdOptions options, Handlers handlers)
    : io_(io), options_(std::move(options)), handlers_(std::move(handlers)) {
  for (const std::string& name : options_.members) {
    const std::shared_ptr<grpc::Channel> channel = ChannelTo(options_, name);
    members_.push_back({.kv = etcdserverpb::KV::NewStub(channel),
                        .large_kv = etcdserverpb::KV::NewStub(ChannelTo(options_, name)),
                        .lease = etcdserverpb::Lease::NewStub(channel),
                        .watch = etcdserverpb::Watch::NewStub(channel),
                        .auth = etcdserverpb::Auth::NewStub(channel)});
  }
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
  if (options_.user.empty() || !token_.empty()) return go(absl::OkStatus());
  await_token_.push_back(std::move(go));
  if (await_token_.size() == 1) AskForToken();
}

void EtcdMembers::AskForToken() {
  const auto call = std::make_shared<
      UnaryCall<etcdserverpb::AuthenticateRequest, etcdserverpb::AuthenticateResponse>>(io_);
  call->request.set_name(options_.user);
  call->request.set_password(options_.password);
  using Service = etcdserverpb::Auth::StubInterface::async_interface;
  void (Service::*authenticate)(grpc::ClientContext*, const etcdserverpb::AuthenticateRequest*,
                                etcdserverpb::AuthenticateResponse*,
                                std::function<void(grpc::Status)>) = &Service::Authenticate;
  Begin(call, *members_[member_].auth->async(), authenticate, options_.patience,
        [this, call, member = member_](const grpc::Status& end) {
          if (end.ok()) token_ = call->answer.token();
          HearOfToken(end.ok() ? absl::OkStatus() : Unanswered({member, ""}, end));
        });
}

void EtcdMembers::HearOfToken(absl::Status status) {
  // "authentication failed, invalid user ID or password"
  if (absl::IsInvalidArgument(status)) status = absl::PermissionDeniedError(status.message());
  for (const auto& waiting : std::exchange(await_token_, {})) waiting(status);
}

void EtcdMembers::ForgetToken(const std::string& token) {
  if (token_ == token) token_.clear();
}

bool EtcdMembers::IsRefused(const grpc::Status& end, const std::string& token) {
  return !token.empty() && absl::IsUnauthenticated(FromWire(end));
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
  ++unanswered_;
  if (unanswered_ == members_.size() && handlers_.trouble) {
    handlers_.trouble(absl::StrCat("no member of etcd answers; the last, ",
                                   options_.members[asked.member], ": ",
                                   std::string(status.message())));
  }
  return status;
}

}  // namespace muster::rendezvous::etcd
