// The terminals where a command for many hosts was typed, for the workers on those hosts.
#pragma once

#include "launcher/environment.h"
#include "proto/launch.pb.h"

namespace muster::launcher {

// Which of this process's stdout and stderr are terminals, and the sizes that these have now.
launch::v1::Terminals TerminalsHere();

// Says so in the job, if there is any, and what `own` says of it that programs ask for (TERM), but
// for what the user has set for the job.
void AddTerminals(launch::v1::Job& job, const Environment& own);

}  // namespace muster::launcher
