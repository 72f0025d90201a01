// One of several daemons that take turns over a simulated etcd: the Candidate and the journal that
// are shipped, combined as in rendezvous/ha_daemon.cc, and what serves while it leads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "rendezvous/etcd/journal_source.h"
#include "rendezvous/etcd/leader.h"
#include "rendezvous/journal/journal.h"
#include "test/rendezvous/cluster/ledger.h"
#include "test/rendezvous/cluster/service.h"
#include "test/rendezvous/cluster/world.h"
#include "test/rendezvous/etcd/sim_etcd.h"
#include "test/rendezvous/etcd/sim_etcd_client.h"
#include "test/rendezvous/simulation/process.h"
#include "test/rendezvous/simulation/sim_clock.h"

namespace muster::rendezvous {

class Standby {
 public:
  struct Options {
    int place = 0;  // in the network
    DaemonMutations mutations;
  };
  Standby(World world, SimEtcd& etcd, Ledger& ledger, KnownSessions& sessions,
          const Options& options);
  ~Standby() { Kill(); }
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;

  // Each does nothing when that cannot be.
  void Start();
  void Kill();
  // SIGTERM: it gives its lease back, ends, and is started again.
  void Terminate();
  void Stop();
  void Continue();
  // Its host loses its power, or has it again.
  void PowerOff();
  void PowerOn();

  // It has taken over, and may speak.
  bool serves() const { return service_ != nullptr && candidate_->Leads(); }
  const Service* service() const { return service_.get(); }
  const SimClock& clock() const { return clock_; }
  int place() const { return options_.place; }
  // To etcd.
  SimWay& way() { return way_; }
  // Whether it may be killed in the middle of a batch that takes several transactions.
  void DieInLargeBatches(bool may) { dies_in_large_batches_ = may; }

 private:
  void TakeOver(const etcd::Fence& fence, etcd::LeaseId lease);
  void OnOpened(absl::StatusOr<OpenedJournal> opened);
  void Serve();
  void Write(DiskBatch batch, std::function<void(DiskOutcome)> done);
  void OnCommitted(const absl::Status& status, const std::function<void(DiskOutcome)>& done);
  // What it says is heard: it must be the only one.
  void OnWord();
  // The process ends by itself, in the middle of whatever it does, and its keeper starts another.
  void End(const std::string& why);
  void CleanUp(bool power_loss);

  World world_;
  SimEtcd& etcd_;
  Ledger& ledger_;
  KnownSessions& sessions_;
  const Options options_;
  SimWay way_;
  SimClock clock_;
  bool powered_ = true;
  bool dies_in_large_batches_ = false;
  // What its keeper's file says; goes with the host.
  etcd::LeaseId noted_lease_ = 0;

  std::uint64_t life_ = 0;
  std::shared_ptr<Process> process_;
  std::unique_ptr<SimEtcdClient> client_;
  std::optional<etcd::Candidate> candidate_;
  etcd::LeaseId lease_ = 0;
  etcd::Fence fence_;
  // That of leaders_test follows it in memory; here all is read at each take-over.
  std::optional<etcd::PageReader> pages_;
  std::unique_ptr<etcd::EtcdSource> source_;
  OpenedJournal home_;
  std::unique_ptr<Service> service_;
};

}  // namespace muster::rendezvous
