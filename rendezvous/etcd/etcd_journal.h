// The journal of a daemon that leads, in etcd.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/etcd/etcd.h"
#include "rendezvous/etcd/journal_source.h"
#include "rendezvous/etcd/leader.h"
#include "rendezvous/journal/journal.h"

namespace muster::rendezvous::etcd {

// Whether etcd takes transactions as large as those of a journal, found out with two that change
// nothing: InvalidArgument when its --max-txn-ops or its --max-request-bytes is too small, or as
// Etcd::Transact. The first large batch would else tell, when jobs run, and end the daemon.
void CheckEtcdTakesBatches(Etcd& etcd, const std::string& root,
                           std::function<void(absl::Status)> done);

// Takes the journal under `root` over for who leads by `fence`: completes what the last leader had
// committed, counts this start, reads everything, and then calls `done` from the loop of `etcd`,
// which must outlive the journal, or, when it cannot even begin, at once. What was there is read
// from `source`, which must live until then. The journal stays readable for `etcdctl`:
// journal_keys.h says what is where.
//
// A batch that fits into one transaction is one. A larger one is put down in parts, beside the
// journal; one transaction then says that it counts, which is the commit, and others take it over
// into the journal before the next batch. Whoever leads next finishes that.
//
// As Journal says, ResourceExhausted from Commit means that nothing was written: etcd's quota is
// used up (NOSPACE). Errors of opening:
//   Aborted              another daemon leads
//   DataLoss             what is there is damaged
//   FailedPrecondition   a later version of Muster has written it
//   or as Etcd::Transact.
void OpenEtcdJournal(Etcd& etcd, Fence fence, std::string root, JournalSource& source,
                     std::function<void(absl::StatusOr<OpenedJournal>)> done);

}  // namespace muster::rendezvous::etcd
