// One of several daemons in a simulated world: the election, the mirror and the journal that are
// shipped, and a daemon's use of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "rendezvous/etcd/journal_mirror.h"
#include "rendezvous/etcd/journal_source.h"
#include "rendezvous/etcd/leader.h"
#include "rendezvous/journal/journal.h"
#include "test/rendezvous/etcd/history.h"
#include "test/rendezvous/etcd/sim_etcd.h"
#include "test/rendezvous/etcd/sim_etcd_client.h"
#include "test/rendezvous/simulation/process.h"
#include "test/rendezvous/simulation/sim_clock.h"

namespace muster::rendezvous {

class SimLeader {
 public:
  struct Mutations {
    SimEtcdClient::Mutations client;
    bool speaks_when_its_lease_is_over = false;
  };
  SimLeader(Scheduler& scheduler, Random& random, SimEtcd& etcd, History& history, int index,
            Mutations mutations);
  ~SimLeader() { Kill(); }

  void Start();
  void Kill();
  // SIGTERM: it gives its lease back.
  void Terminate();
  void Stop() {
    if (process_ != nullptr) process_->Stop();
  }
  void Continue() {
    if (process_ != nullptr) process_->Continue();
  }
  bool runs() const { return process_ != nullptr; }
  // It has taken over, and may speak.
  bool serves() const { return journal_ != nullptr && candidate_->Leads(); }
  SimWay& way() { return way_; }

 private:
  void Lead(const etcd::Fence& fence, etcd::LeaseId lease);
  void Open(std::unique_ptr<etcd::MemorySource> memory);
  // What is in memory is what is in etcd.
  void Compare(const etcd::MemorySource& memory);
  void TakeOver(OpenedJournal opened);
  void SpeakSoon();
  void WriteSoon();
  void Write();
  void Commit(const JournalBatch& batch, const History::State& after);
  JournalBatch MakeBatch();
  // The process ends, and its supervisor starts it again.
  void EndSoon();

  Scheduler& scheduler_;
  Random& random_;
  SimEtcd& etcd_;
  History& history_;
  const int index_;
  const Mutations mutations_;
  SimWay way_;
  // Each host's clock runs a little faster or slower than time.
  SimClock clock_;

  std::uint64_t life_ = 0;
  std::shared_ptr<Process> process_;
  std::unique_ptr<SimEtcdClient> client_;
  std::optional<etcd::JournalMirror> mirror_;
  std::optional<etcd::PageReader> pages_;
  std::unique_ptr<etcd::JournalSource> source_;
  std::optional<etcd::Candidate> candidate_;
  etcd::LeaseId lease_ = 0;
  etcd::Fence fence_;
  std::unique_ptr<Journal> journal_;
  History::State state_;  // in its memory
};

}  // namespace muster::rendezvous
