// All agents of a job in one process, for a load generator, each with its own client and session.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous::bench {

// Used on the loop's thread only. A refusal, an eviction, the end of a round or of a connection
// that nobody has announced, or the end of the job makes the run invalid and ends the process with
// its message: figures from an unintended course of events would be worse than none.
class Gathering {
 public:
  using MakeClient =
      std::function<std::unique_ptr<RendezvousClient>(RendezvousClient::Listener& listener)>;

  // Creates `count` agents of job `run_id`, without joining. A round of the job needs all of them,
  // and starts when the last one has joined. By default a lease that a machine which is at its
  // limits does not break.
  Gathering(std::string run_id, int count, const MakeClient& make_client,
            Duration lease = std::chrono::seconds(60));
  ~Gathering();
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

  int size() const { return static_cast<int>(agents_.size()); }
  int joined() const { return joined_; }

  // The next `how_many` agents join, in order.
  void Join(int how_many);
  // All agents report that their workers have started.
  void WorkersStarted();
  // From now on each of their eight ranks tells of new steps with each beat, as muster-train does;
  // one of them is a straggler.
  void TellSteps() { tells_steps_ = true; }
  // A worker of the first agent fails: each agent joins again when it is told to stop its workers,
  // as if these took no time for it. Once all have their Assignment; counts anew who has the next.
  void FailOne();
  // Agents may have to wait until there is time for them, and to come back, until all have come:
  // that they come at once is what is tried.
  void AllowWaiting(bool allow) { waits_ = allow; }
  // Connections may break from now on. Counts anew how many are back.
  void ExpectLoss() {
    expects_loss_ = true;
    lost_ = back_ = 0;
  }
  // All agents report that their workers have succeeded, and leave.
  void Leave();

  // How many agents attend, how many have their Assignment, and how many have left.
  int welcomed() const { return welcomed_; }
  int assigned() const { return assigned_; }
  int left() const { return left_; }
  // How many agents' connections broke, how many of these are back, and how many have had to kill
  // their workers meanwhile.
  int lost() const { return lost_; }
  int back() const { return back_; }
  int fenced() const { return fenced_; }

  // Starts or stops recording how long the answer to each beat takes.
  void WatchBeats(bool watch) { watches_beats_ = watch; }
  const std::vector<std::chrono::nanoseconds>& beats() const { return beats_; }

 private:
  class Agent;

  JoinRequest RequestOf(int index) const;

  const std::string run_id_;
  const Duration lease_;
  std::vector<std::unique_ptr<Agent>> agents_;
  int joined_ = 0;
  int welcomed_ = 0;
  int assigned_ = 0;
  int left_ = 0;
  int lost_ = 0;
  int back_ = 0;
  int fenced_ = 0;
  bool waits_ = false;
  bool expects_stop_ = false;
  bool expects_loss_ = false;
  bool watches_beats_ = false;
  bool tells_steps_ = false;
  std::vector<std::chrono::nanoseconds> beats_;
};

}  // namespace muster::rendezvous::bench
