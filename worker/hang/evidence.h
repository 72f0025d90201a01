// Evidence: what the workers of a node were doing when they were found to hang, recorded before
// they are killed.
//
// First comes what /proc shows of all of them, which takes milliseconds and is from one moment.
// Then come the stacks, from a program that attaches to the processes, which may take its time: a
// few processes at a time, with a time limit for each and for all together. A worker that ends
// meanwhile just has less to show.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "base/lifetime.h"
#include "worker/hang/stack_command.h"
#include "worker/process/timed_command.h"

namespace muster::worker {

struct EvidenceOptions {
  // Where the files go: "evidence_rank3.txt" in this directory, mode 0600, appended to if it
  // exists. Empty: no files.
  std::string directory;
  // For stacks; nullopt: whichever of gdb, eu-stack and py-spy is installed.
  std::optional<StackCommand> command;
  // For one command, and for all together; after the latter no more are started, and those that are
  // running are killed.
  std::chrono::milliseconds command_limit = std::chrono::seconds(10);
  std::chrono::milliseconds total_limit = std::chrono::seconds(30);
  // For what one command prints.
  std::size_t output_limit = 256 * 1024;
  // How many ranks' stacks are taken at the same time, and of how many processes per rank: the
  // worker first, then what it has started.
  int ranks_at_a_time = 2;
  std::size_t processes_per_rank = 4;
  // A command was started, a child of this program: for WorkerGroup::AddStranger. Called before
  // control returns to the loop.
  std::function<void(pid_t command)> on_command;
};

struct EvidenceTarget {
  int rank = 0;
  // The worker.
  pid_t pid = 0;
  // Why it is examined, a phrase that follows "rank 3"; the first line of its evidence.
  std::string why;
  // In which operations the ranks of this node are, the line below it; empty: none.
  std::string where;
};

struct Evidence {
  int rank = 0;
  std::string text;
  // Where it was written; empty when no directory was given, or it could not be written there.
  std::string file;
  // Why it could not be written; empty otherwise.
  std::string problem;
};

// Lives on the loop's thread, which must be the main thread (worker/process/spawn.h).
class EvidenceRun {
 public:
  // One for each target, in their order.
  using DoneCallback = std::function<void(std::vector<Evidence>)>;

  // Reads /proc at once; the rest happens in the loop. `on_done` is called once, from the loop,
  // within total_limit plus the five seconds that a command may take to die; it may destroy the
  // run.
  EvidenceRun(boost::asio::io_context& io, EvidenceOptions options,
              std::vector<EvidenceTarget> targets, DoneCallback on_done);
  // Kills the commands that are running. No callback runs.
  ~EvidenceRun();
  // Ends the run with what was found so far, written as usual: commands that are running are
  // killed, stacks that are missing are said to be `why`, "the workers are being stopped". No
  // callback runs, neither now nor later. Must not be called after `on_done`.
  std::vector<Evidence> FinishNow(const std::string& why);
  EvidenceRun(const EvidenceRun&) = delete;
  EvidenceRun& operator=(const EvidenceRun&) = delete;

 private:
  // One rank.
  struct Job {
    Evidence evidence;
    // The processes whose stacks are still to be taken, in order.
    std::vector<pid_t> waiting;
    std::unique_ptr<TimedCommand> command;
    bool done = false;
    // Its text already says what would show more of a Python program.
    bool hinted = false;
  };

  void ReadProcesses(const EvidenceTarget& target);
  // Starts what may run now, and ends the run when there is nothing left.
  void GoOn();
  // Starts the job's next command; false when there is none left to start.
  bool StartNext(Job& job);
  void OnCommandDone(Job& job, const StackCommand& command, const TimedCommandResult& result);
  void Write(Evidence& evidence) const;
  void Finish();

  boost::asio::io_context& io_;
  const EvidenceOptions options_;
  const std::chrono::steady_clock::time_point end_;
  DoneCallback on_done_;
  std::vector<std::unique_ptr<Job>> jobs_;
  base::Lifetime lifetime_;
};

}  // namespace muster::worker
