#include "worker/hang/evidence.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/failure_record.h"
#include "worker/hang/process_evidence.h"
#include "worker/output/log_file.h"

namespace muster::worker {
namespace {

using Clock = std::chrono::steady_clock;

// The agent's own environment, but for what would have gdb or eu-stack ask a server in the network
// for debugging symbols, and wait for it.
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

bool ShowsPython(const std::optional<StackCommand>& command) {
  return command.has_value() && command->program() == "py-spy";
}

// How the command ended, where that is worth a line.
std::string Ending(const StackCommand& command, const TimedCommandResult& result) {
  std::string text;
  if (result.output_cut) text += "(the rest of the output is left out)\n";
  if (result.timed_out) {
    absl::StrAppend(&text, "(", command.program(), " took too long and was killed)\n");
  } else if (result.status.has_value() && !result.status->Succeeded()) {
    absl::StrAppend(&text, "(", command.program(), " ", DescribeExit(*result.status), ")\n");
  }
  return text;
}

}  // namespace

EvidenceRun::EvidenceRun(boost::asio::io_context& io, EvidenceOptions options,
                         std::vector<EvidenceTarget> targets, DoneCallback on_done)
    : io_(io),
      options_(std::move(options)),
      end_(Clock::now() + options_.total_limit),
      on_done_(std::move(on_done)) {
  for (const EvidenceTarget& target : targets) ReadProcesses(target);
  boost::asio::post(io_, lifetime_.Guard([this] { GoOn(); }));
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
  job->waiting.assign(tree.begin(), tree.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                       tree.size(), options_.processes_per_rank)));
  jobs_.push_back(std::move(job));
}

void EvidenceRun::GoOn() {
  int running = 0;
  for (const auto& job : jobs_) {
    if (job->done) continue;
    if (running == options_.ranks_at_a_time) return;
    if (job->command == nullptr && !StartNext(*job)) {
      job->done = true;
      Write(job->evidence);
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
    if (left.count() <= 0 || !command.has_value()) {
      text += command.has_value() ? "(none: there was no time left)\n"
                                  : "(none: neither gdb nor eu-stack nor py-spy is installed)\n";
      continue;
    }
    const std::vector<std::string> argv = command->ArgvFor(pid);
    auto started = TimedCommand::Start(io_,
                                       {.argv = argv,
                                        .env = CommandEnvironment(),
                                        .limit = std::min(options_.command_limit, left),
                                        .output_limit = options_.output_limit},
                                       [this, &job, command = *command](TimedCommandResult result) {
                                         OnCommandDone(job, command, result);
                                       });
    if (!started.ok()) {
      absl::StrAppend(&text, "(none: ", started.status().message(), ")\n");
      continue;
    }
    absl::StrAppend(&text, "$ ", absl::StrJoin(argv, " "), "\n");
    job.command = *std::move(started);
    if (options_.on_command) options_.on_command(job.command->pid());
    return true;
  }
  return false;
}

void EvidenceRun::OnCommandDone(Job& job, const StackCommand& command,
                                const TimedCommandResult& result) {
  absl::StrAppend(&job.evidence.text, result.output,
                  absl::EndsWith(result.output, "\n") ? "" : "\n", Ending(command, result));
  job.command.reset();
  GoOn();
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
  lifetime_.End();
  std::vector<Evidence> all;
  for (const auto& job : jobs_) {
    if (!job->done) {
      job->command.reset();
      absl::StrAppend(&job->evidence.text, "(stacks that are missing were not taken: ", why, ")\n");
      Write(job->evidence);
    }
    all.push_back(std::move(job->evidence));
  }
  return all;
}

void EvidenceRun::Finish() {
  std::vector<Evidence> all;
  for (const auto& job : jobs_) all.push_back(std::move(job->evidence));
  // The last thing done: the callback may destroy the run.
  const DoneCallback on_done = std::move(on_done_);
  on_done(std::move(all));
}

}  // namespace muster::worker
