#include "worker/hang/evidence.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "worker/exit_status.h"
#include "worker/hang/process_evidence.h"
#include "worker/output/stream_log.h"
#include "worker/process/process_info.h"
#include "worker/process/process_state.h"

namespace muster::worker {
namespace {

using Clock = std::chrono::steady_clock;

// The agent's environment without DEBUGINFOD_URLS, which makes gdb and eu-stack wait for a server
// with debugging symbols.
std::vector<std::string> CommandEnvironment() {
  std::vector<std::string> environment;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    if (!absl::StartsWith(*entry, "DEBUGINFOD_URLS=")) environment.emplace_back(*entry);
  }
  return environment;
}

constexpr char kPySpyHint[] =
    "(install py-spy to see which lines of the Python program it is at; other tools show the "
    "interpreter's own frames)\n";

// Long compared with the kernel's clock tick.
constexpr std::chrono::milliseconds kBetweenLooks(500);

bool ShowsPython(const std::optional<StackCommand>& command) {
  return command.has_value() && command->program() == "py-spy";
}

// Why the command's output may be incomplete; empty if it is complete.
std::string WhyIncomplete(const StackCommand& command, const TimedCommandResult& result) {
  if (result.timed_out) return absl::StrCat(command.program(), " took too long and was killed");
  if (!result.status.has_value() || result.status->Succeeded()) return "";
  return absl::StrCat(command.program(), " ", DescribeExit(*result.status));
}

// How the command ended, if that is worth a line.
std::string Ending(const StackCommand& command, const TimedCommandResult& result) {
  std::string text;
  if (result.output_cut) text += "(the rest of the output is left out)\n";
  if (const std::string why = WhyIncomplete(command, result); !why.empty()) {
    absl::StrAppend(&text, "(", why, ")\n");
  }
  return text;
}

bool WaitsForAChild(const TaskState& state) {
  return state.syscall == "wait4" || state.syscall == "waitid" || state.syscall == "rt_sigsuspend";
}

// The first process of `tree` that does more than wait for its only child, as a shell started in
// the program's place does. A Python program that waits for a child is the rank itself.
pid_t ProgramOf(const std::vector<pid_t>& tree) {
  if (tree.empty()) return 0;
  pid_t program = tree.front();
  while (!RunsPython(program)) {
    const auto state = ReadState(program);
    if (!state || !WaitsForAChild(*state)) break;
    std::vector<pid_t> children;
    for (const pid_t pid : tree) {
      const auto process = ReadProcess(pid);
      if (process && process->parent == program) children.push_back(pid);
    }
    if (children.size() != 1) break;
    program = children.front();
  }
  return program;
}

}  // namespace

EvidenceRun::EvidenceRun(boost::asio::io_context& io, EvidenceOptions options,
                         std::vector<EvidenceTarget> targets, DoneCallback on_done)
    : io_(io),
      options_(std::move(options)),
      begin_(Clock::now()),
      second_look_(io),
      on_done_(std::move(on_done)) {
  for (const EvidenceTarget& target : targets) ReadProcesses(target);
  second_look_.At(begin_ + kBetweenLooks, [this] {
    LookAgain();
    end_ = Clock::now() + options_.total_limit;
    GoOn();
  });
}

EvidenceRun::~EvidenceRun() = default;

void EvidenceRun::ReadProcesses(const EvidenceTarget& target) {
  auto job = std::make_unique<Job>();
  job->evidence.rank = target.rank;
  std::string& text = job->evidence.text;
  text = absl::StrCat("rank ", target.rank, " ", target.why, "\n",
                      target.where.empty() ? "" : target.where + "\n", "\n");
  const std::vector<pid_t> tree = TreeOf(target.pid);
  for (const pid_t pid : tree) {
    if (const auto process = ReadEvidence(pid)) text += Format(*process);
  }
  if (tree.empty()) absl::StrAppend(&text, "process ", target.pid, " is gone\n");
  job->evidence.without_stacks = "no process was left to inspect";
  job->program = ProgramOf(tree);
  if (const auto state = ReadState(job->program)) {
    job->seen = Observation{.before = *state, .after = *state};
  }
  job->waiting.assign(tree.begin(), tree.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                       tree.size(), options_.processes_per_rank)));
  jobs_.push_back(std::move(job));
}

void EvidenceRun::LookAgain() {
  const auto watched = std::chrono::floor<std::chrono::milliseconds>(Clock::now() - begin_);
  for (const auto& job : jobs_) {
    if (!job->seen) continue;
    const std::optional<TaskState> state = ReadState(job->program);
    // The pid may have been reused.
    if (!state || state->processor_time < job->seen->before.processor_time) {
      job->seen.reset();
      continue;
    }
    job->seen->after = *state;
    job->seen->watched = watched;
    const std::string what = ActivityOf(job->evidence.rank, job->seen).what;
    absl::StrAppend(&job->evidence.text, "process ", job->program, what.empty() ? "" : " ", what,
                    what.empty() ? " " : "; its first thread ", "took ",
                    base::Seconds(state->processor_time - job->seen->before.processor_time),
                    " of processor time in ", base::Seconds(watched), "\n");
  }
}

void EvidenceRun::GoOn() {
  int running = 0;
  for (const auto& job : jobs_) {
    if (job->done) continue;
    if (running == options_.ranks_at_a_time) return;
    if (job->command == nullptr && !StartNext(*job)) {
      Conclude(*job);
      continue;
    }
    ++running;
  }
  if (running == 0) Finish();
}

bool EvidenceRun::StartNext(Job& job) {
  std::string& text = job.evidence.text;
  while (!job.waiting.empty()) {
    const pid_t pid = job.waiting.front();
    job.waiting.erase(job.waiting.begin());
    absl::StrAppend(&text, "\nstacks of process ", pid, ":\n");
    const auto left = std::chrono::floor<std::chrono::milliseconds>(end_ - Clock::now());
    const bool is_python = RunsPython(pid);
    const std::optional<StackCommand> command =
        options_.command.has_value() ? options_.command : PickStackCommand(IsInstalled, is_python);
    if (is_python && !options_.command.has_value() && !ShowsPython(command)) {
      if (!std::exchange(job.hinted, true)) text += kPySpyHint;
    }
    const auto none = [&](std::string why) {
      absl::StrAppend(&text, "(none: ", why, ")\n");
      if (!job.evidence.without_stacks.empty()) job.evidence.without_stacks = std::move(why);
    };
    if (left.count() <= 0 || !command.has_value()) {
      none(command.has_value() ? "no time was left"
                               : "neither gdb nor eu-stack nor py-spy is installed");
      continue;
    }
    const std::vector<std::string> argv = command->ArgvFor(pid);
    auto started =
        TimedCommand::Start(io_,
                            {.argv = argv,
                             .env = CommandEnvironment(),
                             .limit = std::min(options_.command_limit, left),
                             .output_limit = options_.output_limit},
                            [this, &job, pid, command = *command](TimedCommandResult result) {
                              OnCommandDone(job, pid, command, result);
                            });
    if (!started.ok()) {
      none(std::string(started.status().message()));
      continue;
    }
    absl::StrAppend(&text, "$ ", absl::StrJoin(argv, " "), "\n");
    job.command = *std::move(started);
    if (options_.on_command) options_.on_command(job.command->pid());
    return true;
  }
  return false;
}

void EvidenceRun::OnCommandDone(Job& job, pid_t pid, const StackCommand& command,
                                const TimedCommandResult& result) {
  const std::string why = WhyIncomplete(command, result);
  std::vector<std::string> functions = FirstThreadIn(result.output, pid);
  // Output of a user's command is not always recognizable as stacks.
  const bool has_stacks =
      !functions.empty() || (options_.command.has_value() && why.empty() && !result.output.empty());
  if (has_stacks) {
    job.evidence.without_stacks.clear();
  } else if (!job.evidence.without_stacks.empty()) {
    job.evidence.without_stacks =
        why.empty() ? absl::StrCat(command.program(), " showed none") : why;
  }
  // An incomplete one may lack the outer functions.
  if (job.seen && pid == job.program && why.empty()) job.seen->stack = std::move(functions);
  absl::StrAppend(&job.evidence.text, result.output,
                  absl::EndsWith(result.output, "\n") ? "" : "\n", Ending(command, result));
  job.command.reset();
  GoOn();
}

void EvidenceRun::Conclude(Job& job) const {
  job.done = true;
  job.evidence.activity = ActivityOf(job.evidence.rank, job.seen);
  Write(job.evidence);
}

void EvidenceRun::Write(Evidence& evidence) const {
  if (options_.directory.empty()) return;
  const std::string path =
      absl::StrCat(options_.directory, "/evidence_rank", evidence.rank, ".txt");
  absl::StatusOr<LogWriter> file = LogWriter::Open(path);
  evidence.problem = file.ok() ? file->Write(evidence.text) : std::string(file.status().message());
  if (evidence.problem.empty()) evidence.file = path;
}

std::vector<Evidence> EvidenceRun::FinishNow(const std::string& why) {
  second_look_.Cancel();
  std::vector<Evidence> all;
  for (const auto& job : jobs_) {
    if (!job->done) {
      job->command.reset();
      absl::StrAppend(&job->evidence.text, "(stacks that are missing were not taken: ", why, ")\n");
      if (!job->evidence.without_stacks.empty()) job->evidence.without_stacks = why;
      Conclude(*job);
    }
    all.push_back(std::move(job->evidence));
  }
  return all;
}

void EvidenceRun::Finish() {
  std::vector<Evidence> all;
  for (const auto& job : jobs_) all.push_back(std::move(job->evidence));
  // Last, as the callback may destroy the run.
  const DoneCallback on_done = std::move(on_done_);
  on_done(std::move(all));
}

}  // namespace muster::worker
