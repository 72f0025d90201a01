// The commands of `muster`, in the order of its help text. A new one is a file here, its row below,
// and its place in the list. What a command prints and its exit codes are in its help, if not here.
#pragma once

#include <vector>

#include "base/cli/command.h"

namespace muster::launcher {

std::vector<base::Command> Commands();

// Starts this node's workers, supervises them to the end, and reports how it went. `muster launch`
// does so in the words of torch.distributed.launch.
base::Command RunCommand();
base::Command LaunchCommand();

// The runs on this machine, or on others. Prints to stdout; warnings, and the note that there are
// no runs, go to stderr. Exit code: 0, even without runs; 1 when a host has not answered.
base::Command PsCommand();

// What a run prints that was started with --detach: prints what it has printed and what it prints
// until it ends. Exit code: the run's; 4 after a sentence when it was killed, or when there is
// nothing to read.
base::Command AttachCommand();

// Ends runs of this machine, and itself once the runs have ended. Exit code: 0; 1 when one has not
// in time; 2 when there is no such run; 4 when one may not be signalled.
base::Command StopCommand();

// What is wrong with this machine, or between several, before a job finds out. Prints a report to
// stdout. Main thread; may take seconds.
base::Command DoctorCommand();

// The GPUs of this machine, and whether they are fit. Prints to stdout; what is wrong, and the note
// that there are no GPUs, go to stderr. May take seconds where no process holds the driver awake.
base::Command GpusCommand();

// The jobs of a rendezvous. Prints to stdout a table of all jobs, or of one job and its nodes and
// rounds; or JSON (status_view.h); with --watch, again whenever something has changed: on a
// terminal in the same place, else one block after another, or with --json one line after another.
base::Command StatusCommand();

// The same on the whole terminal.
base::Command TopCommand();

// What the workers of a job print, wherever they run.
base::Command LogsCommand();

// What happened to a job, from the event logs of its nodes. Prints a summary to stdout, and writes
// a page or a trace where that is asked for.
base::Command ReplayCommand();

// A job's key-value store for shell scripts. Reads stdin if a value comes from there, and prints
// what was asked for to stdout.
base::Command KvCommand();

// Serves a store for torch.distributed on its own, for tests and tools, until SIGTERM or SIGINT.
// Exit code 4 when it cannot listen.
base::Command StoreCommand();

// A job for Slurm's queue. Becomes sbatch, with the script on its standard input, so the exit code
// is sbatch's; or prints the script. Exit code 4 when there is no sbatch.
base::Command SbatchCommand();

// Prints a job for Kubernetes.
base::Command ManifestCommand();

// Makes and shows the secret that the nodes of jobs share.
base::Command TokenCommand();

}  // namespace muster::launcher
