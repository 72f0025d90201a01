#include "launcher/commands/run.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "base/cli/readers.h"
#include "base/unique_fd.h"
#include "launcher/cli/command_run.h"
#include "launcher/commands/commands.h"
#include "launcher/remote/own_program.h"
#include "launcher/run/interruptions.h"
#include "rendezvous/identity/token.h"
#include "worker/exit_status.h"
#include "worker/process/process.h"
#include "worker/process/spawn.h"

namespace muster::launcher {
namespace {

constexpr char kSbatch[] = "muster sbatch";

struct SbatchArgs : base::CommandArgs {
  bool dry_run = false;
};

constexpr base::Flag kSbatchFlags[] = {
    {.name = "--dry-run",
     .kind = base::Flag::Kind::kSwitch,
     .help = "Print the script, and submit nothing. Before sbatch's flags.",
     .set = base::Store<base::ReadSwitch, &SbatchArgs::dry_run>},
};

int Submit(const std::string& script) {
  const base::UniqueFd file(::memfd_create("muster-sbatch", MFD_CLOEXEC));
  const bool written =
      file.get() >= 0 &&
      ::write(file.get(), script.data(), script.size()) == static_cast<ssize_t>(script.size()) &&
      ::lseek(file.get(), 0, SEEK_SET) == 0 && ::dup2(file.get(), STDIN_FILENO) >= 0;
  if (written) ::execlp("sbatch", "sbatch", nullptr);
  return Fail(
      kSbatch,
      absl::StrCat("cannot run sbatch: ", std::strerror(errno),
                   "; is Slurm installed here? `muster sbatch --dry-run` prints the script"),
      kExitNodeFailed);
}

int Sbatch(const SbatchArgs& args) {
  const auto end = std::find(args.operands.begin(), args.operands.end(), "--");
  if (end == args.operands.end() || end + 1 == args.operands.end()) {
    return Fail(kSbatch,
                "there is nothing to run after --; write `muster sbatch [sbatch's "
                "flags] -- [flags of muster run] script [arguments]`",
                kExitBadInput);
  }
  const auto script =
      BatchScript({args.operands.begin(), end}, OwnProgram(), {end + 1, args.operands.end()});
  if (!script.ok()) return Fail(kSbatch, script.status().message(), kExitBadInput);
  return args.dry_run ? PrintOutput(kSbatch, *script) : Submit(*script);
}

// As a shell says it.
constexpr int kKilledBase = 128;
// What nodes have to end in that were told to kill their workers, and srun that was told to end.
constexpr std::chrono::seconds kSrunLimit(5);

Environment StepEnvironment(const SlurmStep& step) {
  Environment environment = ReadEnvironment(environ);
  // Lines of all ranks come together in one place.
  environment.emplace("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "[${role_name}${rank}]:");
  for (const std::string& variable : step.environment) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos) continue;
    environment[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  environment[kOrdersVariable] = absl::StrCat(kOrdersFd);
  return environment;
}

class StepRun {
 public:
  StepRun(boost::asio::io_context& io, const SlurmStep& step)
      : io_(io),
        step_(step),
        signals_(
            io, {.stop = step.stop_signals, .in_slurm = true},
            [this](int signal) { OnStopSignal(signal); },
            // Srun passes those on.
            [this](int signal) { SignalSrun(signal); }),
        deadline_(io) {}

  int Execute() {
    std::signal(SIGPIPE, SIG_IGN);
    // Before a signal can be missed that comes while srun begins.
    signals_.Begin();
    const absl::Status started = Start();
    if (!started.ok()) {
      std::fprintf(stderr,
                   "muster run: cannot run srun, which starts the job on the allocation's nodes: "
                   "%s; MUSTER_SLURM=0 starts it on this node alone\n",
                   std::string(started.message()).c_str());
      return kExitNodeFailed;
    }
    io_.run();
    return exit_code_;
  }

 private:
  absl::Status Start() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "make a pipe");
    const base::UniqueFd input(ends[0]);
    orders_.reset(ends[1]);
    ::fcntl(orders_.get(), F_SETFL, O_NONBLOCK);
    // What was in standard input is nobody's: srun would give it to all nodes.
    Send((step_.makes_token ? rendezvous::Token::Random().Text() : "") + "\n");
    worker::SpawnRequest request;
    request.argv = SrunCommand(step_, OwnProgram());
    request.env = ToBlock(StepEnvironment(step_));
    request.stdin_fd = input.get();
    // By which srun ends its step; killed, it would leave it behind.
    request.death_signal = SIGTERM;
    auto spawned = worker::Spawn(request);
    if (!spawned.ok()) return spawned.status();
    srun_ = std::make_unique<worker::Process>(
        io_, *std::move(spawned), [this](const worker::ExitStatus& status) { OnEnd(status); });
    return absl::OkStatus();
  }

  // False where nobody takes it.
  bool Send(const std::string& line) {
    return ::write(orders_.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
  }

  void SignalSrun(int signal) {
    if (srun_ != nullptr && srun_->running()) ::kill(srun_->pid(), signal);
  }

  void OnStopSignal(int signal) {
    ++requests_;
    if (!first_signal_) first_signal_ = signal;
    // As srun may still be waiting for the nodes, an order may find nobody.
    if (requests_ > 2 || !Send(StopOrder(signal))) return EndStep();
    if (requests_ == 2) return EndStepAfter(kSrunLimit);
    if (step_.end_limit.count() > 0) EndStepAfter(step_.end_limit);
  }

  void EndStepAfter(std::chrono::seconds limit) {
    deadline_.expires_after(limit);
    deadline_.async_wait([this](boost::system::error_code error) {
      if (!error) EndStep();
    });
  }

  // At once, with all that runs there.
  void EndStep() {
    if (std::exchange(is_ending_, true)) return SignalSrun(SIGKILL);
    SignalSrun(SIGTERM);
    EndStepAfter(kSrunLimit);
  }

  void OnEnd(const worker::ExitStatus& status) {
    deadline_.cancel();
    exit_code_ = is_ending_           ? kKilledBase + *first_signal_
                 : status.signal != 0 ? kKilledBase + status.signal
                                      : status.exit_code;
    io_.stop();
  }

  boost::asio::io_context& io_;
  const SlurmStep& step_;
  Signals signals_;
  boost::asio::steady_timer deadline_;
  // Where srun's standard input comes from. Open to the end: an order may come at any time.
  base::UniqueFd orders_;
  std::unique_ptr<worker::Process> srun_;
  // Signals that have asked the run to end.
  int requests_ = 0;
  std::optional<int> first_signal_;
  bool is_ending_ = false;
  int exit_code_ = kExitSuccess;
};

}  // namespace

base::Command SbatchCommand() {
  return {
      .name = "sbatch",
      .summary = "submit a job to Slurm",
      .operands = "SCRIPT [ARGUMENT...]",
      .forms = "[--dry-run] [SBATCH'S FLAGS] -- [FLAGS OF MUSTER RUN] SCRIPT [ARGUMENTS]",
      .about =
          R"(Submits a job to Slurm: a script whose #SBATCH lines are the flags before --, and which starts
`muster run` with what follows -- once on each node. Nodes, endpoint, run id and the number of
workers (the job's GPUs on a node) are Slurm's, where the flags of muster run say nothing else.

  muster sbatch --nodes=4 --gpus-per-node=8 --time=1-0 -- train.py --lr=0.1
)",
      .end =
          R"(When the time limit comes, or another job takes the nodes, Slurm sends SIGTERM to the job and
SIGKILL after its KillWait (30 s unless the site says otherwise). muster run passes SIGTERM on to the
workers at once. For more time give --signal=TERM@120 and --shutdown-timeout=110; with --requeue
Slurm starts the job again afterwards, under another run id.

Exit codes: those of sbatch; 2 the command line is wrong; 4 sbatch cannot be run.
)",
      .order = base::Command::Order::kForeign,
      .flags = base::WithHelp({kSbatchFlags}),
      .run = WithArgs<SbatchArgs, Sbatch>};
}

int StartStep(const SlurmStep& step) {
  boost::asio::io_context io(1);
  return StepRun(io, step).Execute();
}

}  // namespace muster::launcher
