#include "rendezvous/fronts/grpc_watch_front.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/rendezvous.pb.h"
#include "rendezvous/core/values/limits.h"
#include "rendezvous/core/values/snapshot.h"
#include "rendezvous/fronts/loop_stream.h"
#include "rendezvous/wire/wire.h"

namespace muster::rendezvous {
namespace {

// For the last words of a daemon, whose successor may be waiting.
constexpr std::chrono::milliseconds kLastWords(250);

// Whether a rank of one of them tells of its steps.
bool FillUpdate(const DaemonLoop& daemon_loop, const std::string& run_id, v1::WatchUpdate* update) {
  std::vector<JobSnapshot> jobs;
  if (run_id.empty()) {
    auto all = daemon_loop.List();
    if (all.ok()) jobs = *std::move(all);
  } else if (auto job = daemon_loop.Describe(run_id); job.ok()) {
    jobs.push_back(*std::move(job));
  }
  for (const JobSnapshot& job : jobs) ToWire(job, update->add_jobs());
  return std::any_of(jobs.begin(), jobs.end(), AnyRankTells);
}

}  // namespace

class GrpcWatchFront::Watcher final : public LoopStream<v1::WatchRequest> {
 public:
  Watcher(GrpcWatchFront& front, const grpc::CallbackServerContext& context, CallGate::Pass pass)
      : LoopStream(front.io_, front.router_, Rpc::kWatch, context, std::move(pass)),
        front_(front),
        overdue_(front.io_) {}
  ~Watcher() override { front_.Gone(this); }

  const std::string& tenant() const { return pass_.tenant(); }

  // Something may have changed; null: only the time. Makes an update, or takes one from there.
  void Tell(const JobNews* news, Updates& updates) {
    if (!watches_ || ended()) return;
    if (!MayGoOn()) return End(NoLongerAllowed());
    if (news != nullptr) Note(*news);
    is_due_ = true;
    if (!writing_) WriteNext(&updates);
  }

  // The daemon ends.
  void Part() {
    if (ended()) return;
    parts_ = true;
    if (!watches_) return End(absl::UnavailableError("the daemon is stopping"));
    if (!writing_) WriteNext(nullptr);
  }

 private:
  void HandleOpen() override {
    front_.watchers_.insert(this);
    if (const absl::Status objection = front_.Objection(tenant()); !objection.ok()) {
      return End(objection);
    }
    turn_ = router_.turns().Ask(
        tenant(), caller_.host, [this] { ReadNext(); },
        [this] { End(absl::ResourceExhaustedError("the call's message took too long")); });
  }

  void HandleRead(bool ok) override {
    turn_.reset();
    if (!ok)
      return End(absl::InvalidArgumentError("the call has no message, or an incomplete one"));
    if (!MayGoOn()) return End(NoLongerAllowed());
    if (front_.listener_.watching) {
      auto connection = front_.listener_.watching(caller_.peer);
      if (!connection.ok()) return End(connection.status());
      connection_ = *std::move(connection);
    }
    run_id_ = in_.run_id();
    if (!run_id_.empty()) {
      const absl::StatusOr<JobSnapshot> job = daemon_loop().Describe(run_id_);
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

  void HandleWritten(bool ok) override {
    writing_ = false;
    Taken();
    overdue_.Cancel();
    if (!ok) return HandleGone();
    if (is_due_ && !parts_ && !MayGoOn()) return End(NoLongerAllowed());
    if (is_due_ || parts_) WriteNext(nullptr);
  }

  void HandleEnd(const absl::Status&) override {
    turn_.reset();
    overdue_.Cancel();
    connection_.reset();
    admission_.place.reset();
    AwaitTaken(update_.Length());
  }

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
    if (const absl::Status standing = daemon_loop().Standing(); !standing.ok())
      return End(standing);
    const bool is_over = !run_id_.empty() && !ended_jobs_.empty();
    const bool has_more = is_due_ || !ended_jobs_.empty();
    if (has_more) update_ = Update(updates);
    is_due_ = has_changed_ = false;
    ended_jobs_.clear();
    if (!is_over && !parts_) {
      writing_ = true;
      AwaitTaken(update_.Length());
      BeOverdueAfterAWhile();
      return StartWrite(&update_);
    }
    End(is_over ? absl::OkStatus() : absl::UnavailableError("the daemon is stopping"),
        has_more ? &update_ : nullptr);
  }

  // Made once for all callers that are told the same: one with no update on its
  // way is told the news alone.
  grpc::ByteBuffer Update(Updates* updates) const {
    const auto key = std::make_pair(tenant(), run_id_);
    if (updates != nullptr) {
      if (const auto made = updates->find(key); made != updates->end()) return made->second;
    }
    v1::WatchUpdate update;
    const bool any_rank_tells = FillUpdate(daemon_loop(), run_id_, &update);
    for (const auto& end : ended_jobs_) ToWire(*end, update.add_ended());
    update.set_unchanged(!has_changed_);
    grpc::ByteBuffer bytes;
    ToBytes(update, &bytes);
    front_.OnTold(any_rank_tells, bytes.Length());
    if (updates != nullptr) updates->emplace(key, bytes);
    return bytes;
  }

  void BeOverdueAfterAWhile() {
    overdue_.After(std::chrono::seconds(limits::kWatcherSeconds.most), [this] {
      // What it has not taken would be kept for as long as it is there.
      context_.TryCancel();
      End(absl::ResourceExhaustedError("this client does not read what it is sent"));
    });
  }

  GrpcWatchFront& front_;
  std::unique_ptr<ReadScheduler::Turn> turn_;  // until the request has been read
  std::string run_id_;                         // empty: all jobs
  bool watches_ = false;
  bool parts_ = false;
  std::shared_ptr<void> connection_;  // is in use
  // What there is to tell.
  bool is_due_ = false;
  bool has_changed_ = false;
  std::vector<std::shared_ptr<const JobEnd>> ended_jobs_;
  // So many of the next news were over when it came: another job of that name may have begun since.
  std::size_t ends_known_ = 0;
  bool writing_ = false;     // update_ is gRPC's
  grpc::ByteBuffer update_;  // also from the end on
  base::Timer overdue_;
};

GrpcWatchFront::GrpcWatchFront(boost::asio::io_context& io, RpcRouter& router, ChangeFeed& feed,
                               Listener listener)
    : io_(io), router_(router), feed_(feed), listener_(std::move(listener)), parting_(io) {
  feed_.Add(*this);
  router.ServeStream(Rpc::kWatch,
                     [this](const grpc::CallbackServerContext& context, CallGate::Pass pass) {
                       return Watcher::Open<Watcher>(*this, context, std::move(pass));
                     });
}

GrpcWatchFront::~GrpcWatchFront() {
  feed_.Remove(*this);
}

void GrpcWatchFront::Publish(const ChangeFeed::News& news) {
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
  if (watchers_.empty() && ended_) EndWithin(std::chrono::milliseconds(0));
}

void GrpcWatchFront::End(std::function<void()> ended) {
  feed_.Flush();
  for (Watcher* const watcher : watchers_) watcher->Part();
  if (watchers_.empty()) return ended();
  ended_ = std::move(ended);
  EndWithin(kLastWords);
}

void GrpcWatchFront::EndWithin(std::chrono::milliseconds time) {
  parting_.After(time, [this] { std::exchange(ended_, {})(); });
}

}  // namespace muster::rendezvous
