// This node's part in a job: what `muster run` does once it knows what is wanted.
#pragma once

#include <optional>

#include <boost/asio/io_context.hpp>

#include "launcher/cli/launch_config.h"
#include "launcher/machine/environment.h"
#include "launcher/machine/nproc.h"

namespace muster::launcher {

// Runs the workers on `io`, which nothing else uses, until the job is over here; returns the exit
// code. What the agent itself says goes to `speech_fd`, and `orders_fd` brings it signals, if what
// has started this process (hosts_run.h) gave it such descriptors.
int RunNode(boost::asio::io_context& io, LaunchConfig config, Environment environment,
            const Machine& machine, std::optional<int> speech_fd, std::optional<int> orders_fd);

}  // namespace muster::launcher
