#include "rendezvous/etcd/etcd_client.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include <grpcpp/create_channel.h>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/strings/str_cat.h"
#include "base/lifetime.h"
#include "etcd/etcdserver/etcdserverpb/rpc.grpc.pb.h"
#include "rendezvous/etcd/etcd_calls.h"
#include "rendezvous/etcd/etcd_wire.h"
#include "rendezvous/etcd/patience.h"
#include "rendezvous/net/grpc_runtime.h"

namespace muster::rendezvous::etcd {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Between two rounds of asking every member.
constexpr milliseconds kRoundPause(100);
// How many times as long as usual a transaction waits for a member at most, where all are slow.
constexpr int kMostPatience = 8;
// 8 MiB of values are asked for at most (PageSize), and each has a key. What a watch tells comes in
// fragments of 1.5 MiB.
constexpr int kLargestAnswer = 16 << 20;

constexpr char kGoneBack[] = "etcd has gone back to what it was: it was restored from a snapshot";

// The answer to a watch that is created: etcd is not as far as what was seen of it, and would say
// nothing until it is.
bool IsOfThePast(const etcdserverpb::WatchResponse& answer, Revision seen) {
  return answer.created() && answer.header().revision() != 0 && answer.header().revision() < seen;
}

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

using KeepAliveStream =
    Stream<etcdserverpb::LeaseKeepAliveRequest, etcdserverpb::LeaseKeepAliveResponse>;
using WatchStream = Stream<etcdserverpb::WatchRequest, etcdserverpb::WatchResponse>;

class EtcdClient final : public Etcd {
 public:
  EtcdClient(boost::asio::io_context& io, EtcdOptions options,
             std::function<void(const std::string&)> trouble)
      : io_(io),
        options_(std::move(options)),
        trouble_(std::move(trouble)),
        patience_(options_.patience, kMostPatience),
        range_pause_(io) {
    for (const std::string& name : options_.members) {
      const std::shared_ptr<grpc::Channel> channel = ChannelTo(options_, name);
      members_.push_back({.kv = etcdserverpb::KV::NewStub(channel),
                          .lease = etcdserverpb::Lease::NewStub(channel),
                          .watch = etcdserverpb::Watch::NewStub(channel),
                          .auth = etcdserverpb::Auth::NewStub(channel)});
    }
  }

  ~EtcdClient() override {
    if (watch_ != nullptr) watch_->Abandon();
    EndWatch();
    for (auto& [number, cancel] : under_way_) cancel();
  }

  void Transact(Transaction transaction,
                std::function<void(absl::StatusOr<Outcome>)> done) override {
    Try(std::make_shared<Attempts>(Attempts{
        .request = ToWire(transaction), .done = std::move(done), .patience = patience_.now()}));
  }

  void Attempt(Transaction transaction,
               std::function<void(absl::StatusOr<Outcome>)> done) override {
    Call<etcdserverpb::TxnResponse>(
        ToWire(transaction), &Member::kv, &etcdserverpb::KV::StubInterface::async_interface::Txn,
        [done = std::move(done)](const absl::Status& status,
                                 const etcdserverpb::TxnResponse& answer) {
          if (!status.ok()) return done(status);
          done(FromWire(answer));
        });
  }

  void Grant(milliseconds ttl, std::function<void(absl::StatusOr<Granted>)> done) override {
    etcdserverpb::LeaseGrantRequest request;
    request.set_ttl(std::chrono::ceil<std::chrono::seconds>(ttl).count());
    Call<etcdserverpb::LeaseGrantResponse>(
        request, &Member::lease, &etcdserverpb::Lease::StubInterface::async_interface::LeaseGrant,
        [done = std::move(done)](const absl::Status& status,
                                 const etcdserverpb::LeaseGrantResponse& answer) {
          if (!status.ok()) return done(status);
          if (!answer.error().empty()) return done(absl::UnavailableError(answer.error()));
          done(Granted{answer.id(), std::chrono::seconds(answer.ttl())});
        });
  }

  void Revoke(LeaseId lease, std::function<void(absl::Status)> done) override {
    etcdserverpb::LeaseRevokeRequest request;
    request.set_id(lease);
    Call<etcdserverpb::LeaseRevokeResponse>(
        request, &Member::lease, &etcdserverpb::Lease::StubInterface::async_interface::LeaseRevoke,
        [done = std::move(done)](const absl::Status& status,
                                 const etcdserverpb::LeaseRevokeResponse&) { done(status); });
  }

  void TimeToLive(LeaseId lease, std::function<void(absl::StatusOr<milliseconds>)> done) override {
    etcdserverpb::LeaseTimeToLiveRequest request;
    request.set_id(lease);
    Call<etcdserverpb::LeaseTimeToLiveResponse>(
        request, &Member::lease,
        &etcdserverpb::Lease::StubInterface::async_interface::LeaseTimeToLive,
        [done = std::move(done)](const absl::Status& status,
                                 const etcdserverpb::LeaseTimeToLiveResponse& answer) {
          if (!status.ok()) return done(status);
          // Of one that it does not know it says neither.
          if (answer.grantedttl() == 0)
            return done(absl::NotFoundError("etcd has ended the lease"));
          done(std::chrono::seconds(answer.ttl()));
        });
  }

  void KeepAlive(LeaseId lease, std::function<void(absl::StatusOr<milliseconds>)> done) override {
    WithToken([this, lease, done = std::move(done)](const absl::Status& status) {
      if (!status.ok()) return done(status);
      etcdserverpb::LeaseKeepAliveRequest request;
      request.set_id(lease);
      const std::size_t member = member_;
      const std::string token = token_;
      const std::uint64_t number = ++last_number_;
      auto* const stream = new KeepAliveStream(io_, request);
      under_way_[number] = [stream] { stream->Abandon(); };
      Prepare(stream->context());
      stream->context().set_deadline(std::chrono::system_clock::now() + options_.patience / 2);
      members_[member].lease->async()->LeaseKeepAlive(&stream->context(), stream);
      stream->Start(
          {.answered = lifetime_.Guard(
               [this, number, stream, done](const etcdserverpb::LeaseKeepAliveResponse& answer) {
                 stream->Abandon();
                 under_way_.erase(number);
                 AllIsWell();
                 if (answer.ttl() > 0) return done(std::chrono::seconds(answer.ttl()));
                 done(absl::NotFoundError("etcd has ended the lease"));
               }),
           .ended = lifetime_.Guard([this, member, token, number, done](const grpc::Status& ended) {
             under_way_.erase(number);
             done(Unanswered(member, token, ended));
           })});
    });
  }

  void AwaitDeletion(const std::string& key, Revision after,
                     std::function<void(absl::Status)> ended) override {
    if (watch_ != nullptr) std::exchange(watch_, nullptr)->Abandon();
    WithToken([this, key, after, ended = std::move(ended)](const absl::Status& status) {
      if (!status.ok()) return ended(status);
      etcdserverpb::WatchRequest request;
      etcdserverpb::WatchCreateRequest& create = *request.mutable_create_request();
      create.set_key(key);
      // From that one on, of which nothing is wanted: a deletion in the revision that was just
      // compacted is left out without a word (etcd 3.4), but not one after it.
      create.set_start_revision(after);
      create.add_filters(etcdserverpb::WatchCreateRequest::NOPUT);
      const std::size_t member = member_;
      const std::string token = token_;
      watch_ = new WatchStream(io_, request);
      Prepare(watch_->context());
      members_[member].watch->async()->Watch(&watch_->context(), watch_);
      watch_->Start(
          {.answered = lifetime_.Guard(
               [this, token, after, ended](const etcdserverpb::WatchResponse& answer) {
                 AllIsWell();
                 const bool gone_back = IsOfThePast(answer, after);
                 if (!answer.canceled() && !gone_back && FromWire(answer, after).empty()) return;
                 std::exchange(watch_, nullptr)->Abandon();
                 if (gone_back) return ended(absl::UnavailableError(kGoneBack));
                 if (!answer.canceled()) return ended(absl::OkStatus());
                 // Its past has been compacted away, or the member may not be asked; or the token
                 // is refused, which etcd says in the same words as that it has no right to.
                 if (token_ == token) token_.clear();
                 ended(absl::UnavailableError(absl::StrCat("etcd: ", answer.cancel_reason())));
               }),
           .ended = lifetime_.Guard([this, member, token, ended](const grpc::Status& status) {
             watch_ = nullptr;
             ended(Unanswered(member, token, status));
           })});
    });
  }

  void Watch(const Range& range, Revision after, std::function<void(std::vector<Change>)> changed,
             std::function<void(absl::Status)> ended) override {
    EndWatch();
    range_ended_ = std::move(ended);
    WithToken([this, range, after, number = range_number_,
               changed = std::move(changed)](const absl::Status& status) {
      if (number != range_number_) return;
      if (!status.ok()) return BreakWatch(status);
      const std::string token = token_;
      range_watch_ = new WatchStream(io_, ToWire(range, after));
      range_member_ = member_;
      Prepare(range_watch_->context());
      members_[member_].watch->async()->Watch(&range_watch_->context(), range_watch_);
      range_watch_->Start(
          {.answered = lifetime_.Guard([this, token, after,
                                        changed](const etcdserverpb::WatchResponse& answer) {
             AllIsWell();
             if (IsOfThePast(answer, after)) return BreakWatch(absl::OutOfRangeError(kGoneBack));
             if (!answer.canceled()) {
               std::vector<Change> changes = FromWire(answer, after);
               if (!changes.empty()) changed(std::move(changes));
               return;
             }
             if (answer.compact_revision() != 0) {
               return BreakWatch(absl::OutOfRangeError("etcd: the revision has been compacted"));
             }
             // As for a token that has run out; whoever may not read a range does not watch it.
             if (token_ == token) token_.clear();
             BreakWatch(absl::UnavailableError(absl::StrCat("etcd: ", answer.cancel_reason())));
           }),
           .ended =
               lifetime_.Guard([this, member = member_, token, number](const grpc::Status& status) {
                 range_watch_ = nullptr;
                 const absl::Status why = Unanswered(member, token, status);
                 if (number == range_number_) BreakWatch(why);
               })});
    });
  }

  void EndWatch() override {
    ++range_number_;
    range_ended_ = nullptr;
    range_pause_.cancel();
    if (range_watch_ != nullptr) std::exchange(range_watch_, nullptr)->Abandon();
  }

  void Compact(Revision revision) override {
    etcdserverpb::CompactionRequest request;
    request.set_revision(revision);
    Call<etcdserverpb::CompactionResponse>(
        request, &Member::kv, &etcdserverpb::KV::StubInterface::async_interface::Compact,
        [](const absl::Status&, const etcdserverpb::CompactionResponse&) {});
  }

 private:
  struct Member {
    std::unique_ptr<etcdserverpb::KV::Stub> kv;
    std::unique_ptr<etcdserverpb::Lease::Stub> lease;
    std::unique_ptr<etcdserverpb::Watch::Stub> watch;
    std::unique_ptr<etcdserverpb::Auth::Stub> auth;
  };
  // Of one transaction.
  struct Attempts {
    etcdserverpb::TxnRequest request;
    std::function<void(absl::StatusOr<Outcome>)> done;
    milliseconds patience;  // with each member
    std::size_t failed = 0;
    std::size_t unheard = 0;  // of these, took all of the patience
  };

  void Try(const std::shared_ptr<Attempts>& attempts) {
    Call<etcdserverpb::TxnResponse>(
        attempts->request, &Member::kv, &etcdserverpb::KV::StubInterface::async_interface::Txn,
        [this, attempts, began = Clock::now()](const absl::Status& status,
                                               const etcdserverpb::TxnResponse& answer) {
          Learn(*attempts, status, Clock::now() - began);
          if (status.ok()) return attempts->done(FromWire(answer));
          if (!absl::IsUnavailable(status)) return attempts->done(status);
          // Every member is asked before there is a pause.
          if (++attempts->failed % members_.size() != 0) return Try(attempts);
          auto timer = std::make_shared<boost::asio::steady_timer>(io_, kRoundPause);
          const std::uint64_t number = ++last_number_;
          under_way_[number] = [timer] { timer->cancel(); };
          timer->async_wait(lifetime_.Guard(
              [this, number, timer, attempts](const boost::system::error_code& error) {
                under_way_.erase(number);
                if (!error) Try(attempts);
              }));
        },
        attempts->patience);
  }

  // For how long to wait the next time.
  void Learn(Attempts& attempts, const absl::Status& status, Clock::duration took) {
    if (!absl::IsUnavailable(status)) {
      patience_.Answered(took);
    } else if (took >= attempts.patience && ++attempts.unheard % members_.size() == 0) {
      attempts.patience = patience_.Longer(attempts.patience);
    }
  }

  // One attempt of a unary call of the service whose stub is `stub`.
  template <typename Answer, typename Request, typename Stub, typename Service>
  void Call(const Request& request, std::unique_ptr<Stub> Member::*stub,
            void (Service::*method)(grpc::ClientContext*, const Request*, Answer*,
                                    std::function<void(grpc::Status)>),
            std::function<void(const absl::Status&, const Answer&)> done,
            std::optional<milliseconds> patience = std::nullopt, bool again = true) {
    WithToken([this, request, stub, method, patience, again,
               done = std::move(done)](const absl::Status& status) {
      if (!status.ok()) return done(status, {});
      const std::size_t member = member_;
      const std::string token = token_;
      const std::uint64_t number = ++last_number_;
      const auto call = std::make_shared<UnaryCall<Request, Answer>>(io_);
      call->request = request;
      Prepare(call->context);
      call->context.set_deadline(std::chrono::system_clock::now() +
                                 patience.value_or(options_.patience));
      under_way_[number] = [call] { call->context.TryCancel(); };
      auto answered = lifetime_.Guard([this, call, member, token, number, stub, method, patience,
                                       again, done](const grpc::Status& end) {
        under_way_.erase(number);
        if (!end.ok()) {
          const absl::Status why = Unanswered(member, token, end);
          // Etcd has done nothing; a take-over must not wait because a token has run out.
          if (again && IsRefused(end, token)) {
            return Call<Answer>(call->request, stub, method, done, patience, /*again=*/false);
          }
          return done(why, {});
        }
        AllIsWell();
        done(absl::OkStatus(), call->answer);
      });
      ((members_[member].*stub)->async()->*method)(
          &call->context, &call->request, &call->answer,
          [&io = io_, call, answered = std::move(answered)](grpc::Status end) mutable {
            boost::asio::post(io, [call = std::move(call), answered = std::move(answered),
                                   end = std::move(end)]() mutable { answered(end); });
          });
    });
  }

  // The watch of a range is over.
  void BreakWatch(const absl::Status& why) {
    auto ended = std::move(range_ended_);
    EndWatch();
    if (!ended) return;
    range_pause_.expires_after(absl::IsUnavailable(why) ? kRoundPause : milliseconds(0));
    range_pause_.async_wait(lifetime_.Guard([number = range_number_, this, ended = std::move(ended),
                                             why](const boost::system::error_code& error) {
      if (!error && number == range_number_) ended(why);
    }));
  }

  void Prepare(grpc::ClientContext& context) const {
    // A member that has lost the others says so, instead of leaving us to wait.
    context.AddMetadata("hasleader", "true");
    if (!token_.empty()) context.AddMetadata("token", token_);
  }

  // Calls `go` at once where etcd has no users, else when there is a token.
  void WithToken(std::function<void(const absl::Status&)> go) {
    if (options_.user.empty() || !token_.empty()) return go(absl::OkStatus());
    await_token_.push_back(std::move(go));
    if (await_token_.size() > 1) return;
    const std::size_t member = member_;
    const auto call = std::make_shared<
        UnaryCall<etcdserverpb::AuthenticateRequest, etcdserverpb::AuthenticateResponse>>(io_);
    call->request.set_name(options_.user);
    call->request.set_password(options_.password);
    call->context.set_deadline(std::chrono::system_clock::now() + options_.patience);
    auto answered = lifetime_.Guard([this, call, member](const grpc::Status& end) {
      under_way_.erase(0);
      if (end.ok()) token_ = call->answer.token();
      absl::Status status = end.ok() ? absl::OkStatus() : Unanswered(member, "", end);
      // "authentication failed, invalid user ID or password"
      if (absl::IsInvalidArgument(status)) status = absl::PermissionDeniedError(status.message());
      for (const auto& waiting : std::exchange(await_token_, {})) waiting(status);
    });
    under_way_[0] = [call] { call->context.TryCancel(); };
    members_[member].auth->async()->Authenticate(
        &call->context, &call->request, &call->answer,
        [&io = io_, call, answered = std::move(answered)](grpc::Status end) mutable {
          boost::asio::post(io, [call = std::move(call), answered = std::move(answered),
                                 end = std::move(end)]() mutable { answered(end); });
        });
  }

  // The token was not accepted, so that another is needed.
  static bool IsRefused(const grpc::Status& end, const std::string& token) {
    return !token.empty() && absl::IsUnauthenticated(FromWire(end));
  }

  // The next call goes to another member, unless it was only the token.
  absl::Status Unanswered(std::size_t member, const std::string& token, const grpc::Status& end) {
    absl::Status status = FromWire(end);
    if (absl::IsUnauthenticated(status) && !token.empty()) {
      // It has run out, or users have changed, or a member that was started again does not know it.
      if (token_ == token) token_.clear();
      return absl::UnavailableError(status.message());
    }
    if (status.ok()) status = absl::UnavailableError("etcd: the stream has ended");
    if (!absl::IsUnavailable(status)) return status;
    // Of calls beside one another that it does not answer, the first has said so.
    const bool is_news = member == member_;
    if (is_news) member_ = (member_ + 1) % members_.size();
    // It tells no changes either; a host without power would be noticed by that in twelve seconds.
    if (range_watch_ != nullptr && range_member_ == member) BreakWatch(status);
    if (!is_news) return status;
    ++unanswered_;
    if (unanswered_ == members_.size() && trouble_) {
      trouble_(absl::StrCat("no member of etcd answers; the last, ", options_.members[member], ": ",
                            std::string(status.message())));
    }
    return status;
  }

  void AllIsWell() { unanswered_ = 0; }

  boost::asio::io_context& io_;
  const EtcdOptions options_;
  const std::function<void(const std::string&)> trouble_;
  std::vector<Member> members_;
  Patience patience_;           // of transactions
  std::size_t member_ = 0;      // to be asked next
  std::size_t unanswered_ = 0;  // in a row
  std::string token_;
  std::deque<std::function<void(const absl::Status&)>> await_token_;
  std::uint64_t last_number_ = 0;
  // How to end what is under way.
  std::map<std::uint64_t, std::function<void()>> under_way_;
  WatchStream* watch_ = nullptr;
  // Of a range: over which stream, to which member, and what hears of its end.
  WatchStream* range_watch_ = nullptr;
  std::size_t range_member_ = 0;
  std::function<void(absl::Status)> range_ended_;
  std::uint64_t range_number_ = 0;  // counts beginnings and ends
  boost::asio::steady_timer range_pause_;
  const base::Lifetime lifetime_;
};

}  // namespace

std::unique_ptr<Etcd> ConnectToEtcd(boost::asio::io_context& io, EtcdOptions options,
                                    std::function<void(const std::string& why)> trouble) {
  return std::make_unique<EtcdClient>(io, std::move(options), std::move(trouble));
}

}  // namespace muster::rendezvous::etcd
