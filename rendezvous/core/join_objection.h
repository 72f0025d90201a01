// What speaks against a Join: pure functions that return the sentence that refuses the request, or
// an empty string if there is no objection.
#pragma once

#include <string>

#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// Against its names: those of the job and of the session.
std::string NameObjection(const JoinRequest& request);

// Against a Join from an agent that already attends the job `run_id` as the node `node_id`.
std::string ReturnObjection(const JoinRequest& request, const std::string& run_id,
                            const std::string& node_id);

// Against a newcomer's request, whatever job it is for: its settings, its node, and whether the two
// go together. `max_nodes`: how many nodes a job may have.
std::string RequestObjection(const JoinRequest& request, int max_nodes);

// Against its taking part in a job with these settings: all nodes must ask for the same.
std::string SettingsDisagreement(const JobSettings& settings, const JoinRequest& request);

}  // namespace muster::rendezvous
