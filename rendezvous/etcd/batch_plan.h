// How a batch of the journal becomes transactions of etcd.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rendezvous/etcd/etcd.h"
#include "rendezvous/etcd/journal_keys.h"
#include "rendezvous/journal/journal.h"

namespace muster::rendezvous::etcd {

// Etcd takes 128 operations and 1.5 MiB for one request unless it is told otherwise
// (--max-txn-ops, --max-request-bytes).
inline constexpr std::size_t kMostOperations = 100;
inline constexpr std::size_t kMostBytes = 1 << 20;

// How many chunks a value has, by its place; those with one are left out. A value that becomes
// shorter leaves chunks that have to be deleted.
using LargeValues = std::map<std::string, std::size_t>;

// Operations that leave the journal as the batch demands, cut into transactions; done in order,
// also when they are begun again from the first. No key is changed twice in one transaction.
// `large` is brought up to date.
std::vector<std::vector<Operation>> PlanBatch(const JournalBatch& batch, const JournalKeys& keys,
                                              LargeValues& large);

// A batch that needs more than one transaction is put down whole first.
std::string ToStaged(const JournalBatch& batch);
// DataLoss when it is none.
absl::StatusOr<JournalBatch> FromStaged(const std::string& bytes);
// Puts that put it down, cut into transactions.
std::vector<std::vector<Operation>> PlanParts(const std::string& staged, const JournalKeys& keys);

}  // namespace muster::rendezvous::etcd
