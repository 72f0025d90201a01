// What `muster run` does once it knows what is wanted: here, on other hosts, in a Slurm allocation,
// and without the terminal.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include <boost/asio/io_context.hpp>

#include "launcher/cli/hosts_run.h"
#include "launcher/cli/launch_config.h"
#include "launcher/cli/slurm.h"
#include "launcher/machine/environment.h"
#include "launcher/machine/nproc.h"
#include "launcher/run/detached_run.h"

namespace muster::launcher {

// This node's part in a job (node_run.cc).

// Runs the workers on `io`, which nothing else uses, until the job is over here; returns the exit
// code. What the agent itself says goes to `speech_fd`, and `orders_fd` brings it signals, if what
// has started this process (hosts_run.h) gave it such descriptors.
int RunNode(boost::asio::io_context& io, LaunchConfig config, Environment environment,
            const Machine& machine, std::optional<int> speech_fd, std::optional<int> orders_fd);

// `muster run --hosts=...`: starts a job on other hosts and shows what comes from them
// (launch_hosts.cc).

// Returns when no node is left, with the job's exit code: that of the node that serves the
// rendezvous, or of the first that failed; 3 when hosts that the job needs could not be reached or
// were lost, and 128+n when signal n came before any node began.
int LaunchHosts(HostsRun run);

// `muster run` in a Slurm allocation: starts the job on its nodes as a step (slurm.cc).

// Runs srun, which shows what workers print, to its end. A signal that asks the run to end is
// passed on to the step's agents as an order, since srun itself would kill the step: workers have
// their time, and a second one ends them at once. Whatever ends this process, the step does not
// outlive it. To be called on the main thread.
//
// Returns the job's exit code; where there is no srun, that of a node that failed, after saying so
// on stderr.
int StartStep(const SlurmStep& step);

// `muster run --detach`: the run goes on without the terminal in which it was typed (attach.cc).

// Forks. In the new process, which leads a session of its own and whose output goes to a file, it
// returns what the run has to finish. In the one that called it returns the exit code: 0 once the
// other process is there and stdout says how to find it, 4 after a sentence on stderr. To be called
// before there is a thread.
std::variant<DetachedRun, int> Detach(const std::string& run_id, const Environment& environment);

}  // namespace muster::launcher
