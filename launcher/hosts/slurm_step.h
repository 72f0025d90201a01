// A run on all nodes of a Slurm allocation, as one step that is still to be started: made once from
// the command line and the environment, read-only afterwards.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace muster::launcher {

struct SlurmStep {
  int nodes = 1;
  // "run" or "launch", and all that followed it on the command line: in the step it is read again,
  // with what Slurm says there.
  std::string dialect;
  std::vector<std::string> args;
  // NAME=VALUE for workers, which they would not have from here otherwise.
  std::vector<std::string> environment;
  // Nodes prove a token to each other that is made for this step. Otherwise they need none, or the
  // user has said which.
  bool makes_token = false;
  // What asks for its end (--signals-to-handle).
  std::vector<int> stop_signals;
  // What the other nodes have to end in once one has ended, by itself or not: the job needs all of
  // them, and Slurm brings none back. 0: without limit.
  std::chrono::seconds end_limit{0};
};

}  // namespace muster::launcher
