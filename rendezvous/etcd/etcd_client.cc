#include "rendezvous/etcd/etcd.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/async/timer.h"
#include "base/lifetime.h"
#include "etcd/etcdserver/etcdserverpb/rpc.grpc.pb.h"
#include "rendezvous/etcd/adaptive_timeout.h"
#include "rendezvous/etcd/etcd_members.h"
#include "rendezvous/net/client_stream.h"

namespace muster::rendezvous::etcd {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Between two rounds of asking every member.
constexpr milliseconds kRoundPause(100);
constexpr char kGoneBack[] = "etcd went back in time: it was restored from a snapshot";

// The answer to a watch that is created: etcd is not as far as what was seen of it, and would say
// nothing until it is.
bool IsOfThePast(const etcdserverpb::WatchResponse& answer, Revision seen) {
  return answer.created() && answer.header().revision() != 0 && answer.header().revision() < seen;
}

using KeepAliveStream =
    ClientStream<etcdserverpb::LeaseKeepAliveRequest, etcdserverpb::LeaseKeepAliveResponse>;
using WatchStream = ClientStream<etcdserverpb::WatchRequest, etcdserverpb::WatchResponse>;

class EtcdClient final : public Etcd {
 public:
  EtcdClient(boost::asio::io_context& io, EtcdOptions options,
             std::function<void(const std::string&)> trouble)
      : io_(io),
        patience_(options.patience, kMostTimes),
        range_pause_(io),
        members_(io, std::move(options),
                 {.trouble = std::move(trouble),
                  .silent = [this](std::size_t member,
                                   const absl::Status& why) { OnSilent(member, why); },
                  // Nothing is known of what there is.
                  .replaced =
                      [this] {
                        seen_ = std::numeric_limits<Revision>::max();
                        range_is_lost_ = true;
                      }}) {}

  ~EtcdClient() override { EndWatch(); }

  void Transact(Transaction transaction,
                std::function<void(absl::StatusOr<Outcome>)> done) override {
    Try(std::make_shared<Attempts>(Attempts{.request = ToWire(transaction),
                                            .done = std::move(done),
                                            .patience = patience_.now(),
                                            .least = LeastOf(transaction)}));
  }

  void Read(Transaction transaction, int times,
            std::function<void(absl::StatusOr<Outcome>)> done) override {
    const milliseconds patience = times * members_.options().patience;
    Try(std::make_shared<Attempts>(Attempts{.request = ToWire(transaction),
                                            .done = std::move(done),
                                            .patience = std::max(patience_.now(), patience),
                                            .is_read = true}));
  }

  void Attempt(Transaction transaction,
               std::function<void(absl::StatusOr<Outcome>)> done) override {
    const Revision least = LeastOf(transaction);
    members_.Call<etcdserverpb::TxnResponse>(
        ToWire(transaction), &EtcdMembers::Member::kv,
        &etcdserverpb::KV::StubInterface::async_interface::Txn,
        [this, least, done = std::move(done)](const absl::Status& status,
                                              const etcdserverpb::TxnResponse& answer) {
          if (!status.ok()) return done(status);
          done(Hear(answer, least));
        });
  }

  void Grant(milliseconds ttl, std::function<void(absl::StatusOr<Granted>)> done) override {
    etcdserverpb::LeaseGrantRequest request;
    request.set_ttl(std::chrono::ceil<std::chrono::seconds>(ttl).count());
    members_.Call<etcdserverpb::LeaseGrantResponse>(
        request, &EtcdMembers::Member::lease,
        &etcdserverpb::Lease::StubInterface::async_interface::LeaseGrant,
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
    members_.Call<etcdserverpb::LeaseRevokeResponse>(
        request, &EtcdMembers::Member::lease,
        &etcdserverpb::Lease::StubInterface::async_interface::LeaseRevoke,
        [done = std::move(done)](const absl::Status& status,
                                 const etcdserverpb::LeaseRevokeResponse&) { done(status); });
  }

  void TimeToLive(LeaseId lease, std::function<void(absl::StatusOr<milliseconds>)> done) override {
    etcdserverpb::LeaseTimeToLiveRequest request;
    request.set_id(lease);
    members_.Call<etcdserverpb::LeaseTimeToLiveResponse>(
        request, &EtcdMembers::Member::lease,
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

  // Etcd asks nobody for a token who keeps a lease alive. To be given a new one may take longer
  // than the lease lasts, as a password is made costly to check.
  void KeepAlive(LeaseId lease, std::function<void(absl::StatusOr<milliseconds>)> done) override {
    members_.WithToken([](const absl::Status&) {});
    etcdserverpb::LeaseKeepAliveRequest request;
    request.set_id(lease);
    const KeepAliveStream::Owner stream = KeepAliveStream::Make(io_);
    const std::uint64_t number = members_.IsUnderWay([stream] { stream->Cancel(); });
    const EtcdMembers::Asked asked = members_.Next(stream->context());
    stream->context().set_deadline(std::chrono::system_clock::now() +
                                   members_.options().patience / 2);
    members_.at(asked.member).lease->async()->LeaseKeepAlive(&stream->context(), stream.get());
    stream->Send(std::move(request));
    stream->Start(
        {.on_read = lifetime_.Guard(
             [this, asked, number, done](const etcdserverpb::LeaseKeepAliveResponse& answer) {
               members_.IsOver(number);
               if (!members_.IsOurs(asked, answer.header())) {
                 return done(members_.Unanswered(asked, EtcdMembers::Stranger()));
               }
               members_.AllIsWell();
               if (answer.ttl() > 0) return done(std::chrono::seconds(answer.ttl()));
               done(absl::NotFoundError("etcd has ended the lease"));
             }),
         .on_done = lifetime_.Guard([this, asked, number, done](const grpc::Status& ended) {
           members_.IsOver(number);
           done(members_.Unanswered(asked, ended));
         })});
  }

  void AwaitDeletion(const std::string& key, Revision after,
                     std::function<void(absl::Status)> ended) override {
    watch_.reset();
    members_.WithToken([this, key, after, ended = std::move(ended)](const absl::Status& status) {
      if (!status.ok()) return ended(status);
      etcdserverpb::WatchRequest request;
      etcdserverpb::WatchCreateRequest& create = *request.mutable_create_request();
      create.set_key(key);
      // From that one on, of which nothing is wanted: a deletion in the revision that was just
      // compacted is left out without a word (etcd 3.4), but not one after it.
      create.set_start_revision(after);
      create.add_filters(etcdserverpb::WatchCreateRequest::NOPUT);
      const EtcdMembers::Asked asked = Begin(watch_, std::move(request));
      watch_->Start(
          {.on_read = lifetime_.Guard(
               [this, asked, after, ended](const etcdserverpb::WatchResponse& answer) {
                 if (!members_.IsOurs(asked, answer.header())) {
                   watch_.reset();
                   return ended(members_.Unanswered(asked, EtcdMembers::Stranger()));
                 }
                 members_.AllIsWell();
                 const bool gone_back = IsOfThePast(answer, after);
                 if (!answer.canceled() && !gone_back && FromWire(answer, after).empty()) return;
                 watch_.reset();
                 if (gone_back) return ended(absl::UnavailableError(kGoneBack));
                 if (!answer.canceled()) return ended(absl::OkStatus());
                 // Its past has been compacted away, or the member may not be asked; or the token
                 // is refused, which etcd says in the same words as that it has no right to.
                 members_.ForgetToken(asked.token);
                 ended(absl::UnavailableError(absl::StrCat("etcd: ", answer.cancel_reason())));
               }),
           .on_done = lifetime_.Guard([this, asked, ended](const grpc::Status& status) {
             watch_.reset();
             ended(members_.Unanswered(asked, status));
           })});
    });
  }

  void Watch(const Range& range, Revision after, std::function<void(std::vector<Change>)> changed,
             std::function<void(absl::Status)> ended) override {
    EndWatch();
    range_ended_ = std::move(ended);
    if (std::exchange(range_is_lost_, false)) return BreakWatch(absl::OutOfRangeError(kGoneBack));
    members_.WithToken([this, range, after, number = range_number_,
                        changed = std::move(changed)](const absl::Status& status) {
      if (number != range_number_) return;
      if (!status.ok()) return BreakWatch(status);
      const EtcdMembers::Asked asked = Begin(range_watch_, ToWire(range, after));
      range_member_ = asked.member;
      range_watch_->Start(
          {.on_read = lifetime_.Guard([this, asked, after,
                                       changed](const etcdserverpb::WatchResponse& answer) {
             if (!members_.IsOurs(asked, answer.header())) {
               range_watch_.reset();
               return BreakWatch(members_.Unanswered(asked, EtcdMembers::Stranger()));
             }
             members_.AllIsWell();
             if (IsOfThePast(answer, after)) return BreakWatch(absl::OutOfRangeError(kGoneBack));
             if (!answer.canceled()) {
               range_refused_ = false;
               std::vector<Change> changes = FromWire(answer, after);
               if (!changes.empty()) changed(std::move(changes));
               return;
             }
             if (answer.compact_revision() != 0) {
               return BreakWatch(absl::OutOfRangeError("etcd: the revision has been compacted"));
             }
             // As for a token that has run out; with another one it is the rights.
             members_.ForgetToken(asked.token);
             const std::string why = absl::StrCat("etcd: ", answer.cancel_reason());
             const bool refused_again =
                 absl::StrContains(why, "permission denied") && std::exchange(range_refused_, true);
             BreakWatch(refused_again ? absl::PermissionDeniedError(why)
                                      : absl::UnavailableError(why));
           }),
           .on_done = lifetime_.Guard([this, asked, number](const grpc::Status& status) {
             range_watch_.reset();
             const absl::Status why = members_.Unanswered(asked, status);
             if (number == range_number_) BreakWatch(why);
           })});
    });
  }

  void EndWatch() override {
    ++range_number_;
    range_ended_ = nullptr;
    range_pause_.Cancel();
    range_watch_.reset();
  }

  void Compact(Revision revision) override {
    etcdserverpb::CompactionRequest request;
    request.set_revision(revision);
    members_.Call<etcdserverpb::CompactionResponse>(
        request, &EtcdMembers::Member::kv,
        &etcdserverpb::KV::StubInterface::async_interface::Compact,
        [](const absl::Status&, const etcdserverpb::CompactionResponse&) {});
  }

 private:
  // Of one transaction.
  struct Attempts {
    etcdserverpb::TxnRequest request;
    std::function<void(absl::StatusOr<Outcome>)> done;
    milliseconds patience;  // with each member
    // Its answer may be large, and when no member has answered in time, that is told.
    bool is_read = false;
    // Etcd has come to this revision when it answers, or has gone back.
    Revision least = 0;
    std::size_t failed = 0;
    std::size_t unheard = 0;  // of these, took all of the patience
  };

  void Try(const std::shared_ptr<Attempts>& attempts) {
    members_.Call<etcdserverpb::TxnResponse>(
        attempts->request,
        attempts->is_read ? &EtcdMembers::Member::large_kv : &EtcdMembers::Member::kv,
        &etcdserverpb::KV::StubInterface::async_interface::Txn,
        [this, attempts, began = Clock::now()](const absl::Status& status,
                                               const etcdserverpb::TxnResponse& answer) {
          Learn(*attempts, status, Clock::now() - began);
          if (status.ok()) return attempts->done(Hear(answer, attempts->least));
          if (!absl::IsUnavailable(status)) return attempts->done(status);
          if (attempts->is_read && IsLate(*attempts)) {
            return attempts->done(absl::DeadlineExceededError(status.message()));
          }
          // Every member is asked before there is a pause.
          if (++attempts->failed % members_.size() != 0) return Try(attempts);
          auto timer = std::make_shared<base::Timer>(io_);
          const std::uint64_t number = members_.IsUnderWay([timer] { timer->Cancel(); });
          timer->After(kRoundPause, [this, number, attempts] {
            members_.IsOver(number);
            Try(attempts);
          });
        },
        attempts->patience);
  }

  // Which revision is the least that the answer can have: what is asked sees all that was answered
  // before. One without operations is answered by any member, with what that happens to know.
  Revision LeastOf(const Transaction& transaction) const {
    return transaction.then.empty() && transaction.otherwise.empty() ? 0 : seen_;
  }
  absl::StatusOr<Outcome> Hear(const etcdserverpb::TxnResponse& answer, Revision least) {
    const Revision revision = answer.header().revision();
    if (revision != 0 && revision < least) {
      seen_ = revision;
      return absl::AbortedError(kGoneBack);
    }
    seen_ = std::max(seen_, revision);
    return FromWire(answer);
  }

  // For how long to wait the next time.
  void Learn(Attempts& attempts, const absl::Status& status, Clock::duration took) {
    if (!absl::IsUnavailable(status)) {
      patience_.Answered(took);
    } else if (took >= attempts.patience) {
      ++attempts.unheard;
      if (IsLate(attempts)) attempts.patience = patience_.Longer(attempts.patience);
    }
  }
  // No member has answered in time.
  bool IsLate(const Attempts& attempts) const {
    return attempts.unheard > 0 && attempts.unheard % members_.size() == 0;
  }

  // A new one; who is asked. It waits for its handlers.
  EtcdMembers::Asked Begin(WatchStream::Owner& watch, etcdserverpb::WatchRequest request) {
    watch = WatchStream::Make(io_);
    const EtcdMembers::Asked asked = members_.Next(watch->context());
    members_.at(asked.member).watch->async()->Watch(&watch->context(), watch.get());
    watch->Send(std::move(request));
    return asked;
  }

  // Nor does it tell changes; a host without power would be noticed by that in twelve seconds.
  void OnSilent(std::size_t member, const absl::Status& why) {
    if (range_watch_ != nullptr && range_member_ == member) BreakWatch(why);
  }

  // The watch of a range is over.
  void BreakWatch(const absl::Status& why) {
    auto ended = std::move(range_ended_);
    EndWatch();
    if (!ended) return;
    range_pause_.After(absl::IsUnavailable(why) ? kRoundPause : milliseconds(0),
                       [ended = std::move(ended), why] { ended(why); });
  }

  boost::asio::io_context& io_;
  AdaptiveTimeout patience_;  // of transactions
  Revision seen_ = 0;         // in answers to them
  WatchStream::Owner watch_;
  // Of a range: over which stream, to which member, and what hears of its end.
  WatchStream::Owner range_watch_;
  std::size_t range_member_ = 0;
  std::function<void(absl::Status)> range_ended_;
  std::uint64_t range_number_ = 0;  // counts beginnings and ends
  bool range_refused_ = false;      // the last time
  bool range_is_lost_ = false;      // the revision of the next one is of a former etcd
  base::Timer range_pause_;
  EtcdMembers members_;
  const base::Lifetime lifetime_;
};

}  // namespace

std::unique_ptr<Etcd> ConnectToEtcd(boost::asio::io_context& io, EtcdOptions options,
                                    std::function<void(const std::string& why)> trouble) {
  return std::make_unique<EtcdClient>(io, std::move(options), std::move(trouble));
}

}  // namespace muster::rendezvous::etcd
