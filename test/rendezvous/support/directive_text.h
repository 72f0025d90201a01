// Directives and snapshots as text, for transcripts and simulation traces.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/core/values/messages.h"
#include "rendezvous/core/values/snapshot.h"

namespace muster::rendezvous {

// "start round 0: group 1/2, ranks 2-3/4, master 10.0.0.1:40001, restart 0/1 (gets rank 1 ...)"
std::string DirectiveText(const Directive& directive);

// One line for the job, then one line per node.
std::vector<std::string> SnapshotText(const JobSnapshot& job);

}  // namespace muster::rendezvous
