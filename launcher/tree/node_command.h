// How a host's node is started: the command line and the environment of its agent.
#pragma once

#include <string>
#include <vector>

#include "launcher/environment.h"
#include "proto/launch.pb.h"

namespace muster::launcher {

// Whether the node is that of `muster doctor --hosts`, which reads what it is to do.
bool IsDoctor(const launch::v1::Job& job);

// `program` run ... or launch ..., with the user's flags and what the job and the host decide.
// `endpoint` is the rendezvous's; unused where the job has none. A doctor's node gets
// --node=INDEX@ENDPOINT, where it is to be reached itself.
std::vector<std::string> NodeCommand(const std::string& program, const launch::v1::Job& job,
                                     const launch::v1::Host& self, const std::string& endpoint);

// The host's own environment with the job's variables over it.
std::vector<std::string> NodeEnvironment(const launch::v1::Job& job, Environment own);

}  // namespace muster::launcher
