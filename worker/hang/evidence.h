// Evidence: what a node's workers were doing when they were found to hang, recorded before they are
// killed.
//
// First comes /proc for all of them, which takes milliseconds and shows one moment. Half a second
// later /proc is read again, for the CPU time used since. Then a program attaches to the processes
// for their stacks, a few processes at a time, with a time limit for each and for all together.
// Less is recorded for a worker that exits meanwhile.
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

#include "base/async/timer.h"
#include "worker/hang/activity.h"
#include "worker/hang/process_evidence.h"
#include "worker/process/process.h"

namespace muster::worker {

struct EvidenceOptions {
  // The directory for the files "evidence_rank3.txt", mode 0600, appended to if they exist. Empty:
  // no files.
  std::string directory;
  // The command for stacks; nullopt: gdb, eu-stack or py-spy, whichever is installed.
  std::optional<StackCommand> command;
  // Limits for one command and for all together. After the latter no more are started, and running
  // ones are killed.
  std::chrono::milliseconds command_limit = std::chrono::seconds(10);
  std::chrono::milliseconds total_limit = std::chrono::seconds(30);
  // Limit for the output of one command.
  std::size_t output_limit = 256 * 1024;
  // For how many ranks stacks are taken at a time, and for how many processes per rank: the worker
  // first, then its descendants.
  int ranks_at_a_time = 2;
  std::size_t processes_per_rank = 4;
  // A command was started as a child of this program; for WorkerGroup::ExcludeChild. Called before
  // control returns to the loop.
  std::function<void(pid_t command)> on_command;
};

struct EvidenceTarget {
  int rank = 0;
  // The worker.
  pid_t pid = 0;
  // Why it is examined, a phrase that follows "rank 3"; the first line of its evidence.
  std::string why;
  // The operations that this node's ranks are in, for the line below; empty: none.
  std::string where;
};

struct Evidence {
  int rank = 0;
  std::string text;
  // Its path; empty if no directory was given, or writing failed.
  std::string file;
  // Why writing failed; empty otherwise.
  std::string problem;
  // Why it has no stacks, a phrase: "gdb took too long and was killed"; empty: it has.
  std::string without_stacks;
  // What the rank was doing.
  Activity activity{};
};

// Lives on the loop's thread, which must be the main thread (worker/process/spawn.h).
class EvidenceRun {
 public:
  // One for each target, in the same order.
  using DoneCallback = std::function<void(std::vector<Evidence>)>;

  // Reads /proc at once; the rest happens in the loop. `on_done` is called once, from the loop,
  // within total_limit plus half a second plus the five seconds that a command may take to die; it
  // may destroy the run.
  EvidenceRun(boost::asio::io_context& io, EvidenceOptions options,
              std::vector<EvidenceTarget> targets, DoneCallback on_done);
  // Kills running commands. No callback runs.
  ~EvidenceRun();
  // Ends the run with what was found so far, written as usual: kills running commands, and gives
  // `why` ("the workers are being stopped") for missing stacks. No callback runs. Must not be
  // called after `on_done`.
  std::vector<Evidence> FinishNow(const std::string& why);
  EvidenceRun(const EvidenceRun&) = delete;
  EvidenceRun& operator=(const EvidenceRun&) = delete;

 private:
  // One rank.
  struct Job {
    Evidence evidence;
    // The processes whose stacks are still to be taken, in order.
    std::vector<pid_t> waiting;
    // The process of the rank's program: for a shell that waits for its child, the child. 0: none.
    pid_t program = 0;
    std::optional<Observation> seen;
    std::unique_ptr<TimedCommand> command;
    bool done = false;
    // The text already recommends py-spy for its Python program.
    bool hinted = false;
  };

  void ReadProcesses(const EvidenceTarget& target);
  // Observes the programs a second time.
  void LookAgain();
  // Starts what may run now, and ends the run if nothing is left.
  void GoOn();
  // Starts the job's next command; false if there is none left.
  bool StartNext(Job& job);
  void OnCommandDone(Job& job, pid_t pid, const StackCommand& command,
                     const TimedCommandResult& result);
  // The job's evidence is complete.
  void Conclude(Job& job) const;
  void Write(Evidence& evidence) const;
  void Finish();

  boost::asio::io_context& io_;
  const EvidenceOptions options_;
  const std::chrono::steady_clock::time_point begin_;
  base::Timer second_look_;
  std::chrono::steady_clock::time_point end_;  // of the commands; set at the second look
  DoneCallback on_done_;
  std::vector<std::unique_ptr<Job>> jobs_;
};

}  // namespace muster::worker
