// What daemons that take turns have written, and been told of that; for the checks only.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "rendezvous/etcd/etcd.h"
#include "rendezvous/journal/journal.h"
#include "test/rendezvous/cluster/checks/incidents.h"
#include "test/rendezvous/cluster/checks/violations.h"
#include "test/rendezvous/cluster/disk.h"

namespace muster::rendezvous {

// Leaders are named by their fences. What was acknowledged is in `disk`, whose checks then hold for
// an etcd as well. Checked here: each leader reads all that was acknowledged before, a batch that
// was not whole or not at all, and nothing else; and no leader that has been succeeded is
// acknowledged what its successor has not read.
class Ledger {
 public:
  Ledger(Violations& violations, Incidents& incidents, Disk& disk)
      : violations_(violations), incidents_(incidents), disk_(disk) {}

  // The leader has read this, and begins to serve.
  void TookOver(etcd::Revision leader, const JournalContents& read);
  // It tries to write a batch. After one for which there was no space, one that holds more may
  // follow.
  void Writes(etcd::Revision leader, const DiskBatch& batch);
  // It is told that the last one was written.
  void Acknowledged(etcd::Revision leader);

  // Who took over last.
  etcd::Revision leader() const { return leader_; }
  const Disk& disk() const { return disk_; }

 private:
  Violations& violations_;
  Incidents& incidents_;
  Disk& disk_;

  etcd::Revision leader_ = 0;
  std::uint64_t incarnation_ = 0;
  // The leader's, of which it does not know what has become.
  std::vector<DiskBatch> attempts_;
  std::set<etcd::Revision> kept_;  // leaders whose last batch was read by the next one
};

}  // namespace muster::rendezvous
