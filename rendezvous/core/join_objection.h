// What speaks against a Join: pure questions, each answered by the sentence that refuses the
// request, or by an empty one where there is no objection.
#pragma once

#include <string>

#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// Against the names in it: of the job, and of the session.
std::string NameObjection(const JoinRequest& request);

// When it comes from an agent that attends the job `run_id` as the node `node_id`.
std::string ReturnObjection(const JoinRequest& request, const std::string& run_id,
                            const std::string& node_id);

// Against a newcomer's request, whatever job it is for: its settings, its node, and whether the two
// go together. `max_nodes`: how many a job may have.
std::string RequestObjection(const JoinRequest& request, int max_nodes);

// Against its taking part in a job with these settings: all nodes must ask for the same.
std::string SettingsDisagreement(const JobSettings& settings, const JoinRequest& request);

}  // namespace muster::rendezvous
