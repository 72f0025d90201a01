// Who reads what workers print, and which agents bring it to him: the pairing, its pace and its
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
#include "rendezvous/core/byte_budget.h"
#include "rendezvous/core/coordinator.h"
#include "rendezvous/core/directive.h"
#include "rendezvous/core/job/log_places.h"
#include "rendezvous/core/limits.h"
#include "rendezvous/core/log_request.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// Numbered by whoever takes readers; never reused.
using LogReaderId = std::uint64_t;
// What an agent was asked for, once; numbered here, and never reused.
using LogDeliveryId = std::uint64_t;

// What is to be done, in order.
//
// The reader takes this part; Ready follows when he has.
struct GiveLogPart {
  LogReaderId reader = 0;
  LogPart part;
};
// He hears nothing more; his number means nothing any more.
struct EndLogReader {
  LogReaderId reader = 0;
  absl::Status status;
};
// The delivery's agent may bring one more part: Brought or Ended follows.
struct ReadLogDelivery {
  LogDeliveryId delivery = 0;
};
// Nobody wants it any more; the number means nothing any more.
struct EndLogDelivery {
  LogDeliveryId delivery = 0;
};
using LogAction =
    std::variant<Outgoing, GiveLogPart, EndLogReader, ReadLogDelivery, EndLogDelivery>;

// A reader goes through the rounds that he wants one after the other. In each, the nodes that had
// ranks of his are asked (LogWanted): all at once if he follows, else one after the other, in order
// of their ranks. A delivery is in one of these states:
//
//   asked   --Open--> reading; no answer for limits::kLogAnswerSeconds: gone
//   reading --Brought--> holding a part, or the part is given at once and it is read on
//   holding --its part is given--> reading
//   each of these --Ended, or its reader is gone--> gone
//   each of these --its agent attends no more, for limits::kLogAfterJobSeconds--> gone
//
// So of each delivery one part is here at most, however slow its reader is, and no agent is read
// faster than its reader takes. When all deliveries of a round are gone and all has been given, a
// reader who does not follow has ended. One who follows goes on with the next round that starts,
// and ends with the job: once it has a verdict and nothing is left of it, or its agents have left
// and he has not taken the rest within limits::kLogAfterJobSeconds.
//
// Of what cannot be had, its reader is told why, and his end says that something is missing.
// Nothing that a reader or a delivery does changes anything for a job. Pure; not thread-safe.
// `coordinator` must outlive it.
class LogReaders {
 public:
  struct Options {
    std::size_t readers = limits::kLogReaders.most;
    std::size_t deliveries = limits::kLogDeliveries.most;
    // What several of these have together; null: this is the only one. Must outlive it.
    ByteBudget* all_readers = nullptr;
    ByteBudget* all_deliveries = nullptr;
    // The number of the first delivery; none of an earlier life of this daemon may be used again.
    LogDeliveryId first_delivery = 1;
  };

  LogReaders(Coordinator& coordinator, const Options& options);
  LogReaders(const LogReaders&) = delete;
  LogReaders& operator=(const LogReaders&) = delete;

  // Somebody wants to read. He is ready for a first part.
  void Open(LogReaderId id, LogRequest request, TimePoint now);
  // He has taken the part that he was given.
  void Ready(LogReaderId id, TimePoint now);
  // He is gone; no effect on one that has ended.
  void Close(LogReaderId id);

  // An agent has come to bring what it was asked for. False: nobody wants it.
  bool OpenDelivery(LogDeliveryId id);
  // No effect on deliveries that have ended.
  void Brought(LogDeliveryId id, LogPart part, TimePoint now);
  // The agent brings nothing more. `status`: OK if that was all.
  void Ended(LogDeliveryId id, const absl::Status& status, TimePoint now);

  // Something has changed in this job: a round has started, or it has ended.
  void Follow(const std::string& run_id, TimePoint now);
  // Agents may have come back, have left, or are lost. Who has left brings what is left at once;
  // one that stands still may hold its delivery open for ever.
  void FollowAgents(TimePoint now);

  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

  // What has to be done now, one after the other.
  std::optional<LogAction> NextAction();

  // Somebody who follows waits for agents that are out of touch and not given up.
  bool AnyAwaitsAgents() const;
  // Somebody still reads of a job that is gone.
  bool AnyEnds() const;
  std::size_t readers() const { return readers_.size(); }
  std::size_t deliveries() const { return deliveries_.size(); }

 private:
  struct Held {
    LogPart part;
    LogDeliveryId from = 0;  // 0: nobody, it is ours
  };
  struct Reader {
    Reader(LogRequest asked, ByteBudget* budget) : request(std::move(asked)), share(budget) {}

    // Of rounds after the first all is wanted, whatever was asked for of that.
    LogRequest request;
    ByteBudget::Share share;
    // Of the job that he reads.
    Incarnation incarnation = 0;
    RoundNumber round = kNoRound;
    // Places of this round that have not been asked yet; of one who follows, those that are out of
    // touch.
    std::deque<LogPlace> to_ask;
    std::set<LogDeliveryId> deliveries;
    std::deque<Held> held;
    // He takes a part now.
    bool ready = true;
    // Something was missing.
    bool is_incomplete = false;
    // Until when he is waited for, as his job is gone.
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
    // Until when it is waited for; of one that is not open.
    TimePoint asked_until{};
    // Until when it is waited for, as its agent attends no more.
    std::optional<TimePoint> until;
  };
  using Readers = std::map<LogReaderId, Reader>;

  // Why the request is refused, if it is.
  absl::Status Admit(const LogRequest& request, TimePoint now);
  // The job whose output he reads; null: it is gone.
  const Job* JobOf(const Reader& reader) const;
  // Fails where more nodes would have to be asked at once than may be.
  static absl::Status BeginRound(Reader& reader, const LogPlacesOfRound& round);
  // Does what there is to do for the reader now; he may have ended by that.
  void GoOn(LogReaderId id, TimePoint now);
  void GiveHeld(LogReaderId id, Reader& reader);
  void AskPlaces(LogReaderId id, Reader& reader, TimePoint now);
  void Ask(LogReaderId id, Reader& reader, const LogPlace& place, TimePoint now);
  // Of a round in which he has read nothing yet.
  static void WantAll(Reader& reader);
  static bool AwaitsAgents(const Reader& reader);
  static void TellLoss(Reader& reader, std::string sentence);
  // He has all of his round. True: the next has begun; false: he waits for it, or has ended.
  bool EnterNextRound(LogReaderId id, Reader& reader);
  void End(LogReaderId id, const absl::Status& status);
  // Its agent is told, if it has come.
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
