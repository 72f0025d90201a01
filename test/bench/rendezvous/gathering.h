// A job's agents, all in one process, for a load generator: each with a client and a session of its
// own, and what they have been told.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous::bench {

// Lives on the loop's thread. A refusal, an eviction, a broken connection and the job's end are
// failures of the run: they end the process with the sentence that came with them, as figures of
// another course of events than the one that is meant would be worse than none.
class Gathering {
 public:
  using MakeClient =
      std::function<std::unique_ptr<RendezvousClient>(RendezvousClient::Listener& listener)>;

  // `count` agents of job `run_id`, none of which has joined. A round of the job takes them all,
  // and starts when the last of them has joined.
  Gathering(std::string run_id, int count, const MakeClient& make_client);
  ~Gathering();
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

  int size() const { return static_cast<int>(agents_.size()); }

  // The next agents, in order, ask for their places.
  void Join(int how_many);
  // All agents say that their workers have been started.
  void WorkersStarted();
  // All agents say that their workers have succeeded, and leave.
  void Leave();

  // How many agents attend, how many of these hold their Assignment, and how many have left.
  int welcomed() const { return welcomed_; }
  int assigned() const { return assigned_; }
  int left() const { return left_; }

  // From now on keeps the time that each beat's answer took to come, or stops to.
  void WatchBeats(bool watch) { watches_beats_ = watch; }
  const std::vector<std::chrono::nanoseconds>& beats() const { return beats_; }

 private:
  class Agent;

  JoinRequest RequestOf(int index) const;

  const std::string run_id_;
  std::vector<std::unique_ptr<Agent>> agents_;
  int joined_ = 0;
  int welcomed_ = 0;
  int assigned_ = 0;
  int left_ = 0;
  bool watches_beats_ = false;
  std::vector<std::chrono::nanoseconds> beats_;
};

}  // namespace muster::rendezvous::bench
