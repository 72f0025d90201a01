// Takes part in an Election over an etcd that there is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "absl/status/status.h"

#include "base/async/timer.h"
#include "base/lifetime.h"
#include "rendezvous/etcd/election.h"
#include "rendezvous/etcd/etcd.h"

namespace muster::rendezvous::etcd {

// Transactions of one leader, each done once and in order, whatever becomes of their answers.

// The key whose creation says who leads (Election).
struct Fence {
  std::string key;
  Revision created = 0;
};

// The condition that this leader still leads.
inline WasCreated StillLeads(const Fence& fence) {
  return {fence.key, fence.created};
}

// Whether the value `next` of a SequencedWriter's key can have followed on `last` ("": on nothing),
// or have been there before: it is the next one of the same writer, or the first of another. A
// writer leaves one out where there was no space for a transaction.
bool IsNext(std::string_view last, std::string_view next);

// Etcd may do a transaction twice, and the second time late (Etcd::Transact). So each has as its
// condition, beside the fence, that it follows the one before: a key that every transaction
// changes says which was the last. A repetition finds it changed and does nothing; when the first
// answer was lost, it tells that the transaction was done.
//
// One transaction at a time.
class SequencedWriter {
 public:
  // What the key `sequence` said before the first transaction: an old leader's, or nothing.
  struct Last {
    bool any = false;
    std::string value;
  };

  SequencedWriter(Etcd& etcd, Fence fence, std::string sequence, Last last)
      : etcd_(etcd),
        fence_(std::move(fence)),
        sequence_(std::move(sequence)),
        last_(std::move(last)),
        self_(++count_) {}

  // Ends with OK, Aborted when this leader leads no longer, or Etcd's errors. After
  // ResourceExhausted the same operations, or others that outdo them, may be tried again: etcd
  // looks at its space before it looks at conditions, so it is not known whether an attempt before
  // was done whose answer was lost.
  void Write(std::vector<Operation> operations, std::function<void(absl::Status)> done);

  // Of the last transaction that was done; 0: there was none.
  Revision revision() const { return revision_; }

 private:
  struct Writing {
    std::vector<Operation> operations;
    std::string value;
    std::function<void(absl::Status)> done;
  };

  // In what `sequence` is.
  std::string Name() const;
  bool IsOfAnAttempt(const std::string& value) const;
  void Try(std::shared_ptr<const Writing> writing);
  void Judge(const absl::StatusOr<Outcome>& outcome, std::shared_ptr<const Writing> writing);

  Etcd& etcd_;
  const Fence fence_;
  const std::string sequence_;
  Last last_;
  // Of the writers of this process: two of one fence, as when a journal is opened once more, have
  // no transaction in common.
  static inline std::uint64_t count_ = 0;
  const std::uint64_t self_;
  std::uint64_t number_ = 0;  // of the last transaction
  std::uint64_t done_ = 0;    // and of the last that is known to have been done
  Revision revision_ = 0;
  const base::Lifetime lifetime_;
};

// The timer and the calls of an Election (election.h), which decides everything. Lives on the
// loop's thread; the Etcd must outlive it.
class Candidate {
 public:
  // Called from the loop. None may destroy the Candidate.
  struct Handlers {
    std::function<void(Fence fence, LeaseId lease)> won;
    std::function<void(const std::string& leader)> follows;
    std::function<void(const std::string& why)> lost;
    std::function<void(const std::string& why)> trouble;
  };

  Candidate(std::unique_ptr<Alarm> alarm, Etcd& etcd, Election::Options options, Handlers handlers);
  Candidate(const Candidate&) = delete;
  Candidate& operator=(const Candidate&) = delete;

  // It leads, and what it says counts: to be asked before each word.
  bool Leads() const;

  // Another one leads, and this one could.
  bool StandsBy() const { return election_.StandsBy(); }

  // Gives the lease back and calls `done` when etcd has heard it, or does not answer.
  void Resign(std::function<void()> done);

 private:
  Election::TimePoint Now() const { return alarm_->Now(); }
  void Act();
  void ArmTimer();
  // Tells the Election the answer to its call, and does what follows.
  template <typename Answer>
  auto Hear(void (Election::*hears)(std::uint64_t, const Answer&, Election::TimePoint),
            std::uint64_t call);
  void Do(const Election::AskForLease& ask);
  void Do(const Election::Campaign& campaign);
  void Do(const Election::KeepAlive& keep);
  void Do(const Election::AwaitDeletion& await);
  void Do(const Election::AskAfterLease& ask);
  void Do(const Election::Revoke& revoke);
  void Do(const Election::Won& won);
  void Do(const Election::Follows& follows) { handlers_.follows(follows.leader); }
  void Do(const Election::Lost& lost) { handlers_.lost(lost.why); }
  void Do(const Election::Trouble& trouble) { handlers_.trouble(trouble.why); }

  Etcd& etcd_;
  const std::string key_;
  const Handlers handlers_;
  Election election_;
  bool acting_ = false;
  std::function<void()> resigned_;
  std::optional<Election::TimePoint> armed_for_;
  const std::unique_ptr<Alarm> alarm_;
  const base::Lifetime lifetime_;
};

// This machine's clock that goes on while the machine sleeps, and a timer of the loop.

// Lives on the loop's thread; `io` must outlive it.
class BootTimeAlarm final : public Alarm {
 public:
  explicit BootTimeAlarm(boost::asio::io_context& io) : timer_(io) {}

  Election::TimePoint Now() const override;
  void Set(std::optional<Election::TimePoint> time, std::function<void()> ring) override;

 private:
  base::Timer timer_;
};

}  // namespace muster::rendezvous::etcd
