// Takes part in an Election over an etcd that there is.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/lifetime.h"
#include "rendezvous/etcd/alarm.h"
#include "rendezvous/etcd/election.h"
#include "rendezvous/etcd/etcd.h"
#include "rendezvous/etcd/sequenced_writer.h"

namespace muster::rendezvous::etcd {

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

  // Gives the lease back and calls `done` when etcd has heard it, or does not answer.
  void Resign(std::function<void()> done);

 private:
  Election::TimePoint Now() const { return alarm_->Now(); }
  void Act();
  void ArmTimer();
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

}  // namespace muster::rendezvous::etcd
