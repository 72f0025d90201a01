// Brings what workers of this node print to those who read it elsewhere.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/lifetime.h"
#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/core/values/log_request.h"
#include "rendezvous/core/values/messages.h"
#include "rendezvous/core/values/types.h"
#include "worker/output/stream_log.h"
#include "worker/worker_spec.h"

namespace muster::launcher {

// What this node keeps of what its workers have printed, round by round.

// Files are whoever's who has named the log directory, and stay. Memory is kept for the last
// kInMemory rounds: 64 to 128 KiB for each stream without a file that passes through the agent.
class KeptLogs {
 public:
  static constexpr std::size_t kRounds = 16;
  static constexpr std::size_t kInMemory = 3;

  struct Rank {
    int rank = 0;
    std::shared_ptr<worker::StreamLog> out;
    std::shared_ptr<worker::StreamLog> err;
  };

  // These workers are about to be started in `round`: what they print is kept from now on.
  void BeginRound(rendezvous::RoundId round, std::vector<worker::WorkerSpec>& specs);

  // They are gone, or were never started: nothing more comes.
  void EndRound();

  // The workers of that round, by rank; null: nothing of it is kept.
  const std::vector<Rank>* Find(rendezvous::RoundId round) const;

  // Neither that round nor a later one of that life of the job has begun here.
  bool IsToCome(rendezvous::RoundId round) const;

 private:
  struct Round {
    rendezvous::RoundId id;
    std::vector<Rank> ranks;
  };

  std::deque<Round> rounds_;  // the last one last
};

// Reads for each reader as fast as that reader takes it, at most 64 KiB in a turn of the loop;
// nobody waits for a reader, and nothing is kept for it. Lives on the loop's thread.
class LogDeliveries {
 public:
  // `host` is what notices call this node.
  LogDeliveries(boost::asio::io_context& io, std::string host);
  ~LogDeliveries();
  LogDeliveries(const LogDeliveries&) = delete;
  LogDeliveries& operator=(const LogDeliveries&) = delete;

  // Answers `wanted` through `client`. If its round has not begun here, that waits until it has: a
  // daemon that remembers its jobs tells of a round when that is on disk, and asks for its output
  // at once. `kept` is only read now.
  void Begin(const rendezvous::LogWanted& wanted, const KeptLogs& kept,
             rendezvous::RendezvousClient& client);
  // A round has begun, so that `kept` has it.
  void OnRoundBegun(const KeptLogs& kept, rendezvous::RendezvousClient& client);

  // Calls `done`, once and from the loop, when everybody has all, or after `limit`. The workers are
  // gone, so that nothing more comes. To be called once.
  void WhenDone(std::chrono::milliseconds limit, std::function<void()> done);

 private:
  class Delivery;

  void End(std::uint64_t id);
  void TellDone();

  boost::asio::io_context& io_;
  const std::string host_;
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, std::unique_ptr<Delivery>> deliveries_;
  // Of rounds to come. The daemon asks for few at a time, and waits ten seconds for each.
  std::vector<rendezvous::LogWanted> early_;
  boost::asio::steady_timer limit_;
  std::function<void()> done_;
  const base::Lifetime lifetime_;
};

// What one reader is still to be told of what workers of this node have printed, part by part.

// Without `follow`: of each rank, in order, stdout and then stderr, as they are when it begins.
// With it: whichever of them has something, in turns, until all have ended. Reads when it is asked,
// and holds nothing but places. What is no longer there, or never was, is told in a notice.
class LogReading {
 public:
  // `kept` is the round's; null: nothing of it is kept. `host` names this node in notices.
  LogReading(const rendezvous::LogWanted& wanted, const std::vector<KeptLogs::Rank>* kept,
             std::string host, worker::StreamLog::Time now);

  // Nothing is there at the moment; more will come.
  struct NothingYet {};
  // That was all.
  struct All {};
  using Next = std::variant<rendezvous::LogPart, NothingYet, All>;
  Next Take();

  // Calls `call` when there may be more than there was, from within StreamLog's calls and as long
  // as this exists. To be called once, before the first Take.
  void WatchNews(const std::function<void()>& call);

 private:
  struct Source {
    int rank = 0;
    rendezvous::LogStream stream{};
    std::shared_ptr<worker::StreamLog> log;
    std::uint64_t offset = 0;
    // Where it ends, for one that is not followed.
    std::optional<std::uint64_t> stop{};
    bool failed = false;
    // The reader is to be told where it begins before anything of it.
    bool is_announced = true;
    worker::StreamLog::Watch watch{};
  };

  void Add(int rank, rendezvous::LogStream stream, std::shared_ptr<worker::StreamLog> log,
           worker::StreamLog::Time now);
  void ExplainWhatIsNotKept();
  // Where the reader goes on; nullopt: it begins.
  std::optional<std::uint64_t> PositionOf(int rank, rendezvous::LogStream stream) const;
  bool HasMore(const Source& source) const;
  bool IsDone(const Source& source) const;
  rendezvous::LogPart Read(Source& source);

  const rendezvous::LogExtent extent_;
  const rendezvous::RoundNumber round_;
  const std::string host_;
  std::vector<Source> sources_;
  std::size_t turn_ = 0;  // whose it is
  std::deque<rendezvous::LogNotice> notices_;
  // Ranks whose streams do not come by here, by stream and way.
  std::vector<int> bypassed_[2][2];
};

}  // namespace muster::launcher
