// Schedules the opening of tenants' journals.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "base/lifetime.h"
#include "rendezvous/core/values/types.h"
#include "rendezvous/fronts/daemon_loop.h"
#include "rendezvous/journal/journal.h"

namespace muster::rendezvous {

// Many at a time, as a journal in etcd takes several transactions of some time each; but bounded,
// to spare etcd and memory when tenants arrive by the hundred. One opening per tenant, however many
// calls wait for it. After a failure the tenant is not retried for a while: calls may arrive by the
// hundred, too, and agents keep asking; a retry may read the whole journal, and must not keep other
// tenants waiting. The pause doubles with each failure in a row, up to a limit.
//
// Lives on the loop's thread.
class TenantOpenings {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Options {
    std::size_t at_once = 32;
    std::chrono::milliseconds after_failure = std::chrono::seconds(2);  // after the first failure
    std::chrono::milliseconds at_most = std::chrono::minutes(1);
    std::function<TimePoint()> now = std::chrono::steady_clock::now;
  };
  // Opens the journal and then calls `opened` once, before it returns or later from the loop.
  using Open = std::function<void(const std::string& tenant,
                                  std::function<void(const absl::Status&)> opened)>;

  TenantOpenings(Options options, Open open)
      : options_(std::move(options)), open_(std::move(open)) {}

  // OK if it is open; else why not: Unavailable while it is being opened or waits for its turn, or
  // the last failure.
  absl::Status Ask(const std::string& tenant);

  // Calls `over` when the current opening ends, in success or failure. False: there is none.
  bool Await(const std::string& tenant, std::function<void()> over);

  // Whether the reason `why` for a failure differs from the last one; call it before that try is
  // over.
  bool IsNews(const std::string& tenant, const std::string& why) {
    return std::exchange(failures_[tenant].said, why) != why;
  }

 private:
  // For a tenant that could not be opened, until it is.
  struct Failure {
    absl::Status why;
    std::chrono::milliseconds pause{};
    TimePoint until{};
    std::string said{};
  };

  void Next();
  void End(const std::string& tenant, const absl::Status& status);

  const Options options_;
  const Open open_;
  // For each that is not open yet: the callbacks that wait for it.
  std::map<std::string, std::vector<std::function<void()>>> awaited_;
  std::deque<std::string> waiting_;
  std::size_t under_way_ = 0;
  std::map<std::string, Failure> failures_;
  const base::Lifetime lifetime_;
};

// Hands a journal's contents to a DaemonLoop, a part at a time. A store may have millions of
// entries, and a leader has to renew its lease several times a second. So each call takes about ten
// milliseconds at most, and frees what it has handed over.
class JournalReplay {
 public:
  // The DaemonLoop must outlive it, and must not be used otherwise before the last call.
  JournalReplay(DaemonLoop& daemon_loop, JournalContents contents);

  // Hands over the next part; true: there is more. DataLoss if something is not a valid job record.
  absl::StatusOr<bool> Go();

  // Makes all these calls, and then calls `done` with the result: at once or, with `later`, which
  // runs a function in a later turn of the loop, one per turn.
  using Later = std::function<void(std::function<void()>)>;
  static void Complete(std::shared_ptr<JournalReplay> journal_replay, const Later& later,
                       std::function<void(const absl::Status&)> done);

 private:
  absl::Status RestoreJob(const std::string& run_id, const std::string& bytes);

  DaemonLoop& daemon_loop_;
  JournalContents contents_;
  std::size_t next_job_ = 0;
  std::size_t next_entry_ = 0;
};

// Death notices for agents whose tenant has not been loaded yet. A guard reports only once that its
// agent is dead. While tenants' journals are being opened or retried, the agent may belong to one
// of those. Lives on the loop's thread.
class PendingDeathNotices {
 public:
  // Any stranger may send one, and its tenant may never be opened: beyond this number an agent is
  // lost only at the end of its lease.
  static constexpr std::size_t kMost = 10'000;

  void Add(const SessionToken& session) {
    if (sessions_.size() < kMost) sessions_.push_back(session);
  }
  // One more tenant is open.
  void Tell(DaemonLoop& daemon_loop) const {
    for (const SessionToken& session : sessions_) daemon_loop.AgentDied(session);
  }
  // All of them are.
  void Clear() { sessions_.clear(); }

 private:
  std::vector<SessionToken> sessions_;
};

// Runs long work in parts, between other handlers of the loop. One part per turn of the loop, first
// in, first out. So other handlers, such as the renewal of a leader's lease, wait for at most one
// part. Lives on the loop's thread; destroys parts that have not run.
class CooperativeQueue {
 public:
  explicit CooperativeQueue(boost::asio::io_context& io) : io_(io) {}

  // Runs `part` in a later turn. It may add others, and may destroy this.
  void Add(std::function<void()> part) {
    parts_.push_back(std::move(part));
    if (parts_.size() == 1) Post();
  }

 private:
  void Post() {
    boost::asio::post(io_, lifetime_.Guard([this] {
      const base::Lifetime::Watch watch = lifetime_.watch();
      // It stays in the queue while it runs, so that what it adds waits for the next turn.
      const std::function<void()> part = std::move(parts_.front());
      part();
      if (watch.over()) return;
      parts_.pop_front();
      if (!parts_.empty()) Post();
    }));
  }

  boost::asio::io_context& io_;
  std::deque<std::function<void()>> parts_;
  const base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous
