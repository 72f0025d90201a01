#include "rendezvous/fronts/grpc_watch_front.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <boost/asio/post.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/rendezvous.pb.h"
#include "rendezvous/core/limits.h"
#include "rendezvous/core/names.h"
#include "rendezvous/core/snapshot.h"
#include "rendezvous/fronts/loop_call.h"
#include "rendezvous/fronts/message_bytes.h"
#include "rendezvous/wire/printable.h"
#include "rendezvous/wire/wire.h"

namespace muster::rendezvous {
namespace {

// For the last words of a daemon, whose successor may be waiting.
constexpr std::chrono::milliseconds kLastWords(250);

// Whether a rank of one of them tells of its steps.
bool FillUpdate(const Driver& driver, const std::string& run_id, v1::WatchUpdate* update) {
  std::vector<JobSnapshot> jobs;
  if (run_id.empty()) {
    auto all = driver.List();
    if (all.ok()) jobs = *std::move(all);
  } else if (auto job = driver.Describe(run_id); job.ok()) {
    jobs.push_back(*std::move(job));
  }
  for (const JobSnapshot& job : jobs) ToWire(job, update->add_jobs());
  return std::any_of(jobs.begin(), jobs.end(), AnyRankTells);
}

}  // namespace

// One call. gRPC's callbacks run on gRPC's threads and post; all else is the loop's. It deletes
// itself after OnDone, which gRPC calls last.
class GrpcWatchFront::Watcher final : public grpc::ServerGenericBidiReactor {
 public:
  Watcher(GrpcWatchFront& front, const grpc::CallbackServerContext& context, CallGate::Pass pass)
      : front_(front),
        context_(context),
        pass_(std::move(pass)),
        caller_(CallerOf(context)),
        overdue_(front.io_) {
    boost::asio::post(front_.io_, [this] { HandleOpen(); });
  }

  ~Watcher() override {
    if (untaken_) front_.entrance_.untaken().Taken(*untaken_);
    if (cancelled_) pass_.Linger();
    front_.Gone(this);
  }

  void OnReadDone(bool ok) override {
    const bool asked = ok && ParseBytes(&request_bytes_, &request_).ok();
    boost::asio::post(front_.io_, [this, asked] { HandleRead(asked); });
  }
  void OnWriteDone(bool ok) override {
    boost::asio::post(front_.io_, [this, ok] { HandleWritten(ok); });
  }
  void OnCancel() override {
    cancelled_ = true;
    boost::asio::post(front_.io_, [this] { End(absl::CancelledError("the caller has gone")); });
  }
  void OnDone() override {
    boost::asio::post(front_.io_, [self = std::unique_ptr<Watcher>(this)] {});
  }

  const std::string& tenant() const { return pass_.tenant(); }

  // Something may have changed; null: only the time. Makes an update, or takes one from there.
  void Tell(const JobNews* news, Updates& updates) {
    if (!watches_ || ended_) return;
    if (!front_.entrance_.MayGoOn(Rpc::kWatch, context_)) {
      return End(absl::PermissionDeniedError("this client has a token that no longer counts"));
    }
    if (news != nullptr) Note(*news);
    is_due_ = true;
    if (!writing_) WriteNext(&updates);
  }

  // The daemon ends.
  void Part() {
    if (ended_) return;
    parts_ = true;
    if (!watches_) return End(absl::UnavailableError("the daemon is stopping"));
    if (!writing_) WriteNext(nullptr);
  }

  // Ends the call, whatever is on its way.
  void End(const absl::Status& status) {
    if (ended_) return;
    BeforeEnd();
    Finish(ToGrpcStatus(status));
  }

 private:
  void HandleOpen() {
    front_.watchers_.insert(this);
    absl::StatusOr<Admission> admission =
        front_.entrance_.Admit(Rpc::kWatch, context_, caller_, pass_);
    if (!admission.ok()) return End(admission.status());
    admission_ = *std::move(admission);
    if (const absl::Status objection = front_.Objection(tenant()); !objection.ok()) {
      return End(objection);
    }
    turn_ = front_.entrance_.turns().Ask(
        tenant(), caller_.host, [this] { StartRead(&request_bytes_); },
        [this] { End(absl::ResourceExhaustedError("the call's message took too long")); });
  }

  void HandleRead(bool ok) {
    turn_.reset();
    if (ended_) return;
    if (!ok) return End(absl::InvalidArgumentError("the call has no message, or a part of one"));
    if (front_.listener_.watching) {
      auto connection = front_.listener_.watching(caller_.peer);
      if (!connection.ok()) return End(connection.status());
      connection_ = *std::move(connection);
    }
    run_id_ = request_.run_id();
    if (!run_id_.empty()) {
      const absl::StatusOr<JobSnapshot> job = driver().Describe(run_id_);
      if (!job.ok()) return End(job.status());
      if (job->outcome) {
        ended_jobs_.push_back(
            std::make_shared<const JobEnd>(JobEnd{run_id_, *job->outcome, job->sentence}));
      }
    }
    watches_ = true;
    is_due_ = has_changed_ = true;
    ends_known_ = front_.feed_.PendingEnds(tenant());
    WriteNext(nullptr);
    // When it goes on follows from what was told.
    front_.feed_.Begin();
  }

  void HandleWritten(bool ok) {
    writing_ = false;
    if (!ended_) front_.entrance_.untaken().Taken(*std::exchange(untaken_, std::nullopt));
    overdue_.cancel();
    if (ended_) return;
    if (!ok) return End(absl::CancelledError("the caller has gone"));
    if (is_due_ || parts_) WriteNext(nullptr);
  }

  Driver& driver() const { return *admission_.driver; }

  void Note(const JobNews& news) {
    has_changed_ = true;
    std::size_t known = std::exchange(ends_known_, 0);
    for (const auto& end : news.ended) {
      if (known > 0) {
        --known;
        continue;
      }
      if (!run_id_.empty() && end->run_id != run_id_) continue;
      if (ended_jobs_.size() >= ChangeFeed::kMostEnds) ended_jobs_.erase(ended_jobs_.begin());
      ended_jobs_.push_back(end);
    }
  }

  // What has not been told; then the end of the call, if it is time for that.
  void WriteNext(Updates* updates) {
    if (const absl::Status standing = driver().Standing(); !standing.ok()) return End(standing);
    const bool is_over = !run_id_.empty() && !ended_jobs_.empty();
    const bool has_more = is_due_ || !ended_jobs_.empty();
    if (has_more) update_ = Update(updates);
    is_due_ = has_changed_ = false;
    ended_jobs_.clear();
    if (!is_over && !parts_) {
      writing_ = true;
      untaken_ = front_.entrance_.untaken().Add(caller_.peer, update_.Length());
      AwaitTaken();
      return StartWrite(&update_);
    }
    BeforeEnd();
    const grpc::Status status =
        is_over ? grpc::Status::OK : ToGrpcStatus(absl::UnavailableError("the daemon is stopping"));
    if (!has_more) return Finish(status);
    StartWriteAndFinish(&update_, grpc::WriteOptions(), status);
  }

  // Made once for all who are told the same: who has nothing on his way is told the news alone.
  grpc::ByteBuffer Update(Updates* updates) const {
    const auto key = std::make_pair(tenant(), run_id_);
    if (updates != nullptr) {
      if (const auto made = updates->find(key); made != updates->end()) return made->second;
    }
    v1::WatchUpdate update;
    const bool any_rank_tells = FillUpdate(driver(), run_id_, &update);
    for (const auto& end : ended_jobs_) ToWire(*end, update.add_ended());
    update.set_unchanged(!has_changed_);
    grpc::ByteBuffer bytes;
    ToBytes(update, &bytes);
    front_.OnTold(any_rank_tells, bytes.Length());
    if (updates != nullptr) updates->emplace(key, bytes);
    return bytes;
  }

  void AwaitTaken() {
    overdue_.expires_after(std::chrono::seconds(limits::kWatcherSeconds.most));
    overdue_.async_wait(lifetime_.Guard([this](const boost::system::error_code& error) {
      if (error || !writing_ || ended_) return;
      // What it has not taken would be kept for as long as it is there.
      context_.TryCancel();
      End(absl::ResourceExhaustedError("this client does not take what it is told"));
    }));
  }

  void BeforeEnd() {
    ended_ = true;
    turn_.reset();
    overdue_.cancel();
    connection_.reset();
    admission_.place.reset();
    if (!untaken_) untaken_ = front_.entrance_.untaken().Add(caller_.peer, update_.Length());
  }

  GrpcWatchFront& front_;
  const grpc::CallbackServerContext& context_;  // until Finish
  CallGate::Pass pass_;
  const Caller caller_;
  Admission admission_;
  std::unique_ptr<ReadTurns::Turn> turn_;  // until the request has been read
  bool cancelled_ = false;                 // gRPC's; OnDone comes after OnCancel
  grpc::ByteBuffer request_bytes_;         // gRPC's between StartRead and OnReadDone, as is
  v1::WatchRequest request_;               // what it says

  std::string run_id_;  // empty: all jobs
  bool watches_ = false;
  bool parts_ = false;
  bool ended_ = false;                // Finish was called
  std::shared_ptr<void> connection_;  // is in use
  // What there is to tell.
  bool is_due_ = false;
  bool has_changed_ = false;
  std::vector<std::shared_ptr<const JobEnd>> ended_jobs_;
  // So many of the next news were over when it came: another job of that name may have begun since.
  std::size_t ends_known_ = 0;
  bool writing_ = false;     // update_ is gRPC's
  grpc::ByteBuffer update_;  // also from the end on
  boost::asio::steady_timer overdue_;
  std::optional<UntakenAnswers::Id> untaken_;  // what is on its way; from the end on, that
  const base::Lifetime lifetime_;
};

GrpcWatchFront::GrpcWatchFront(boost::asio::io_context& io, CallEntrance& entrance,
                               ChangeFeed& feed, Listener listener)
    : io_(io), entrance_(entrance), feed_(feed), listener_(std::move(listener)), parting_(io) {
  feed_.Add(*this);
  entrance.ServeStream(Rpc::kWatch,
                       [this](const grpc::CallbackServerContext& context, CallGate::Pass pass) {
                         return new Watcher(*this, context, std::move(pass));
                       });
}

GrpcWatchFront::~GrpcWatchFront() {
  feed_.Remove(*this);
}

void GrpcWatchFront::Publish(const ChangeFeed::News& news) {
  if (listener_.look_at_tokens) listener_.look_at_tokens();
  any_rank_tells_ = false;
  told_bytes_ = 0;
  Updates updates;
  for (Watcher* const watcher : watchers_) {
    const auto own = news.find(watcher->tenant());
    if (news.empty()) {
      watcher->Tell(nullptr, updates);
    } else if (own != news.end()) {
      watcher->Tell(&own->second, updates);
    }
  }
}

void GrpcWatchFront::OnTold(bool any_rank_tells, std::size_t bytes) {
  any_rank_tells_ |= any_rank_tells;
  told_bytes_ += bytes;
  pause_ = ChangeFeed::PauseAfter(any_rank_tells_, told_bytes_);
}

absl::Status GrpcWatchFront::Objection(const std::string& tenant) const {
  if (watchers_.size() > limits::kWatchers.most) {
    return absl::ResourceExhaustedError(
        absl::StrCat(limits::kWatchers.most, " calls watch jobs already, which is the limit"));
  }
  const auto own =
      std::count_if(watchers_.begin(), watchers_.end(),
                    [&tenant](const Watcher* watcher) { return watcher->tenant() == tenant; });
  if (!tenant.empty() && static_cast<std::uint64_t>(own) > limits::kWatchersOfTenant.most) {
    return absl::ResourceExhaustedError(
        absl::StrCat(limits::kWatchersOfTenant.most,
                     " calls of this user watch jobs already, which is the limit"));
  }
  return absl::OkStatus();
}

void GrpcWatchFront::Gone(Watcher* watcher) {
  watchers_.erase(watcher);
  if (watchers_.empty() && ended_) parting_.cancel();
}

void GrpcWatchFront::End(std::function<void()> ended) {
  feed_.Flush();
  for (Watcher* const watcher : watchers_) watcher->Part();
  if (watchers_.empty()) return ended();
  ended_ = std::move(ended);
  parting_.expires_after(kLastWords);
  parting_.async_wait(
      lifetime_.Guard([this](const boost::system::error_code&) { std::exchange(ended_, {})(); }));
}

}  // namespace muster::rendezvous
