// Directives and snapshots as the lines that transcripts and simulation traces show.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/core/directive.h"
#include "rendezvous/core/snapshot.h"

namespace muster::rendezvous {

// "start round 0: group 1/2, ranks 2-3/4, master 10.0.0.1:40001, restart 0/1 (gets rank 1 ...)"
std::string DirectiveText(const Directive& directive);

// The job in one line, then a line for each node.
std::vector<std::string> SnapshotText(const JobSnapshot& job);

}  // namespace muster::rendezvous
