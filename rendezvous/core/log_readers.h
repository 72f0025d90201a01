// Connects the readers of worker output with the agents that deliver it, and enforces pace and
// limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "rendezvous/core/coordinator.h"
#include "rendezvous/core/job/job_history.h"
#include "rendezvous/core/values/limits.h"
#include "rendezvous/core/values/log_request.h"
#include "rendezvous/core/values/messages.h"
#include "rendezvous/core/values/quotas.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

// Numbered by the front that takes readers; never reused.
using LogReaderId = std::uint64_t;
// One request to one agent; numbered here, never reused.
using LogDeliveryId = std::uint64_t;

// What the owner has to do, in order.
//
// The reader takes this part; Ready follows once it has.
struct GiveLogPart {
  LogReaderId reader = 0;
  LogPart part;
};
// No further calls are made for this reader, and its id is dead.
struct EndLogReader {
  LogReaderId reader = 0;
  absl::Status status;
};
// The delivery's agent may bring one more part: Brought or Ended follows.
struct ReadLogDelivery {
  LogDeliveryId delivery = 0;
};
// The delivery is no longer wanted, and its id is dead.
struct EndLogDelivery {
  LogDeliveryId delivery = 0;
};
using LogAction =
    std::variant<Outgoing, GiveLogPart, EndLogReader, ReadLogDelivery, EndLogDelivery>;

// A reader goes through the rounds it wants one after the other. In each, the nodes that have the
// wanted ranks are asked (LogWanted): all at once if it follows, else one after the other in rank
// order. A delivery is in one of these states:
//
//   asked   --Open--> reading; no answer for limits::kLogAnswerSeconds: gone
//   reading --Brought--> holding a part, or the part is given at once and reading goes on
//   holding --its part is given--> reading
//   each of these --Ended, or its reader is gone--> gone
//   each of these --its agent left more than limits::kLogAfterJobSeconds ago--> gone
//
// So at most one part of each delivery is in memory, however slow its reader is, and no agent is
// read faster than its reader takes. When all deliveries of a round are gone and all parts have
// been given, a reader that does not follow has ended. One that follows continues with the next
// round that starts, and ends with the job: once the job has a verdict and nothing is left of it,
// or its agents have left and the reader has not taken the rest within limits::kLogAfterJobSeconds.
//
// A reader is told why some output is missing, and its end says that something is. Readers and
// deliveries change nothing for a job. Pure; not thread-safe. `coordinator` must outlive it.
class LogReaders {
 public:
  struct Options {
    std::size_t readers = limits::kLogReaders.most;
    std::size_t deliveries = limits::kLogDeliveries.most;
    // Shared by several of these; null: this is the only one. Must outlive it.
    ByteBudget* all_readers = nullptr;
    ByteBudget* all_deliveries = nullptr;
    // The number of the first delivery; no earlier life of this daemon may have used it.
    LogDeliveryId first_delivery = 1;
  };

  LogReaders(Coordinator& coordinator, const Options& options);
  LogReaders(const LogReaders&) = delete;
  LogReaders& operator=(const LogReaders&) = delete;

  // A new reader, ready for its first part.
  void Open(LogReaderId id, LogRequest request, TimePoint now);
  // The reader has taken its part.
  void Ready(LogReaderId id, TimePoint now);
  // The reader is gone. No effect on one that has ended.
  void Close(LogReaderId id);

  // An agent starts the delivery it was asked for. False: it is no longer wanted.
  bool OpenDelivery(LogDeliveryId id);
  // No effect on deliveries that have ended.
  void Brought(LogDeliveryId id, LogPart part, TimePoint now);
  // The agent delivers nothing more. `status`: OK if it delivered everything.
  void Ended(LogDeliveryId id, const absl::Status& status, TimePoint now);

  // This job has changed: a round has started, or the job has ended.
  void Follow(const std::string& run_id, TimePoint now);
  // Agents may have come back, have left, or are lost. An agent that has left delivers the rest at
  // once; one that is stopped could hold its delivery open indefinitely.
  void FollowAgents(TimePoint now);

  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

  // What has to be done now, one at a time.
  std::optional<LogAction> NextAction();

  // True if a following reader waits for agents that are out of touch and not given up.
  bool AnyAwaitsAgents() const;
  // True if a reader is still reading a job that is gone.
  bool AnyEnds() const;
  std::size_t readers() const { return readers_.size(); }
  std::size_t deliveries() const { return deliveries_.size(); }

 private:
  struct Held {
    LogPart part;
    LogDeliveryId from = 0;  // 0: made here, by no delivery
  };
  struct Reader {
    Reader(LogRequest asked, ByteBudget* budget) : request(std::move(asked)), share(budget) {}

    // For rounds after the first this is reset to ask for everything.
    LogRequest request;
    ByteBudget::Share share;
    // Of the job being read.
    Incarnation incarnation = 0;
    RoundNumber round = kNoRound;
    // Places of this round that have not been asked yet; for a following reader, those that are out
    // of touch.
    std::deque<LogPlace> to_ask;
    std::set<LogDeliveryId> deliveries;
    std::deque<Held> held;
    // The reader can take a part now.
    bool ready = true;
    // Something was missing.
    bool is_incomplete = false;
    // Deadline for the reader to take the rest, once its job is gone.
    std::optional<TimePoint> until;
  };
  struct Delivery {
    Delivery(LogReaderId of, const LogPlace& place, ByteBudget* budget)
        : reader(of), host(place.host), attendee(place.attendee), share(budget) {}

    const LogReaderId reader;
    const std::string host;
    const AttendeeId attendee;
    ByteBudget::Share share;
    bool open = false;
    // Deadline for its agent to open it.
    TimePoint asked_until{};
    // Deadline for its end, once its agent no longer attends.
    std::optional<TimePoint> until;
  };
  using Readers = std::map<LogReaderId, Reader>;

  // Why the request is refused, or OK.
  absl::Status Admit(const LogRequest& request, TimePoint now);
  // The job being read; null: it is gone.
  const Job* JobOf(const Reader& reader) const;
  // Fails if more nodes would have to be asked at once than the limit allows.
  static absl::Status BeginRound(Reader& reader, const LogPlacesOfRound& round);
  // Advances the reader as far as possible now, which may end it.
  void GoOn(LogReaderId id, TimePoint now);
  void GiveHeld(LogReaderId id, Reader& reader);
  void AskPlaces(LogReaderId id, Reader& reader, TimePoint now);
  void Ask(LogReaderId id, Reader& reader, const LogPlace& place, TimePoint now);
  // Sets the request to everything, for a round of which the reader has read nothing yet.
  static void WantAll(Reader& reader);
  static bool AwaitsAgents(const Reader& reader) {
    return reader.request.extent.follow && !reader.to_ask.empty();
  }
  static void TellLoss(Reader& reader, std::string sentence);
  // The reader has all of its round. True: the next has begun; false: it waits for the next, or has
  // ended.
  bool EnterNextRound(LogReaderId id, Reader& reader);
  void End(LogReaderId id, const absl::Status& status);
  // Tells the agent, if the delivery is open.
  void Drop(LogDeliveryId id);

  Coordinator& coordinator_;
  ByteBudget reader_budget_;
  ByteBudget delivery_budget_;
  LogDeliveryId next_delivery_;
  Readers readers_;
  std::map<LogDeliveryId, Delivery> deliveries_;
  std::deque<LogAction> actions_;
};

}  // namespace muster::rendezvous
