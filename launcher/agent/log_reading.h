// What one reader is still to be told of what workers of this node have printed, part by part.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/agent/kept_logs.h"
#include "rendezvous/core/directive.h"
#include "rendezvous/core/log_request.h"
#include "worker/output/stream_log.h"

namespace muster::launcher {

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
  // Where the reader goes on; nullopt: he begins.
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
