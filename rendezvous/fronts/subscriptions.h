// When those who watch jobs are told that something has changed.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "absl/status/status.h"

#include "base/async/timer.h"
#include "rendezvous/core/daemon_core.h"
#include "rendezvous/core/log_readers.h"
#include "rendezvous/core/values/log_request.h"
#include "rendezvous/core/values/messages.h"
#include "rendezvous/core/values/snapshot.h"

namespace muster::rendezvous {

// What has happened to one user's jobs since it was told last.
struct JobNews {
  // In order. After a storm of ends, the last ones (ChangeFeed::kMostEnds). All who wait to be told
  // have them together: each may have 8 KiB.
  std::vector<std::shared_ptr<const JobEnd>> ended;
};

// Whether a rank of the job tells of its steps.
bool AnyRankTells(const JobSnapshot& job);

// A storm of changes is told once: a quarter of a second after the first of them. All watchers are
// told every ten seconds as well, so that they see that we are there and how time goes on; more
// often while ranks tell of their steps. While nobody watches there is no timer. Lives on the
// loop's thread.
class ChangeFeed {
 public:
  static constexpr std::chrono::milliseconds kSoon{250};
  static constexpr std::chrono::seconds kAtLeast{10};
  static constexpr std::size_t kMostEnds = 1024;

  // A publisher's pause after it has told so many bytes. Ranks tell of their steps about once in a
  // second, and that is no change: who watches is told as often if it is short, and of as many
  // bytes in a second if it is long.
  static std::chrono::milliseconds PauseAfter(bool any_rank_tells, std::size_t bytes);

  // By tenant; whoever is not in it has no news.
  using News = std::map<std::string, JobNews>;

  // Passes it on to those who watch.
  class Publisher {
   public:
    virtual ~Publisher() = default;
    // Something has changed for these tenants. Empty: for nobody, and everybody is told that.
    virtual void Publish(const News& news) = 0;
    // Somebody watches.
    virtual bool is_watched() const = 0;
    // After how long there is more to tell, if nothing changes; at most kAtLeast. The shortest of
    // all publishers' counts for all.
    virtual std::chrono::milliseconds pause() const { return kAtLeast; }
  };

  explicit ChangeFeed(boost::asio::io_context& io) : timer_(io) {}
  ChangeFeed(const ChangeFeed&) = delete;
  ChangeFeed& operator=(const ChangeFeed&) = delete;

  // It publishes until it is removed; then it must exist no longer.
  void Add(Publisher& publisher) { publishers_.insert(&publisher); }
  void Remove(Publisher& publisher) { publishers_.erase(&publisher); }
  // The daemon stops: nothing is published any more, and the loop has no timer to wait for.
  void End();
  // Somebody has begun to watch.
  void Begin();

  // Something has happened to a job of the tenant's. What it led to is looked at later, from the
  // loop.
  void Changed(const std::string& tenant, const Transition& transition);
  // Tells now what would be told soon.
  void Flush();
  // The ends of the tenant's jobs that will be told next.
  std::size_t PendingEnds(const std::string& tenant) const;

 private:
  std::chrono::milliseconds Pause() const;
  void PublishAfter(std::chrono::milliseconds pause);
  void Publish(const News& news);
  void Publish();

  std::set<Publisher*> publishers_;
  News news_;
  // Somebody watches, or did when it was last published: the timer runs.
  bool runs_ = false;
  // When everybody is told next, whatever has changed.
  std::chrono::steady_clock::time_point all_are_due_;
  base::Timer timer_;
};

// Where readers of workers' output and the agents that bring it meet in a running daemon.

// Carries out what LogReaders decides; each DaemonLoop has one. Fronts open readings and deliveries
// and say how they fare. Handlers may be called from within any of these calls. Lives on the loop's
// thread.
class LogExchange {
 public:
  // `follow` is called after everything that happens, and has what follows done (Do). `core` must
  // outlive this.
  LogExchange(DaemonCore& core, std::function<void()> follow)
      : core_(core), follow_(std::move(follow)) {}
  LogExchange(const LogExchange&) = delete;
  LogExchange& operator=(const LogExchange&) = delete;

  struct Reader {
    // One part, for which Took is to be called when it is taken: until then no other comes.
    std::function<void(LogPart)> on_part;
    // The last call.
    std::function<void(const absl::Status&)> on_end;
  };
  // The handlers may be called before this returns.
  LogReaderId OpenReader(LogRequest request, Reader reader);
  void Took(LogReaderId reader);
  // It hears nothing more.
  void CloseReader(LogReaderId reader);

  struct Source {
    // One more part may come: Brought or Ended is to follow.
    std::function<void()> read;
    // Nobody wants any more. The last call.
    std::function<void()> end;
  };
  // False: nobody wants what the agent was asked for. `read` may be called before this returns.
  bool OpenDelivery(LogDeliveryId delivery, Source source);
  void Brought(LogDeliveryId delivery, LogPart part);
  // It brings nothing more, and hears nothing more.
  void Ended(LogDeliveryId delivery, const absl::Status& status);

  // Does this, which the core has asked for.
  void Do(GiveLogPart&& give);
  void Do(EndLogReader&& end);
  void Do(ReadLogDelivery&& read);
  void Do(EndLogDelivery&& end);

 private:
  DaemonCore& core_;
  const std::function<void()> follow_;
  LogReaderId next_reader_ = 1;
  std::map<LogReaderId, Reader> readers_;
  std::map<LogDeliveryId, Source> sources_;
};

}  // namespace muster::rendezvous
