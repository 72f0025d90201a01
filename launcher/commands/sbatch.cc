#include "launcher/commands/sbatch.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/unique_fd.h"
#include "launcher/commands/answer.h"
#include "launcher/hosts/batch_script.h"
#include "launcher/report/exit_code.h"
#include "launcher/tree/own_program.h"

namespace muster::launcher {
namespace {

constexpr char kSbatchHelp[] =
    R"(Usage: muster sbatch [--dry-run] [SBATCH'S FLAGS] -- [FLAGS OF MUSTER RUN] SCRIPT [ARGUMENTS]

Submits a job to Slurm: a script whose #SBATCH lines are the flags before --, and which starts
`muster run` with what follows -- once on each node. Nodes, endpoint, run id and the number of
workers (the job's GPUs on a node) are Slurm's, where the flags of muster run say nothing else.

  muster sbatch --nodes=4 --gpus-per-node=8 --time=1-0 -- train.py --lr=0.1

  --dry-run   Print the script, and submit nothing. Before sbatch's flags.
  -h, --help  Print this text.

When the time limit comes, or another job takes the nodes, Slurm sends SIGTERM to the job and
SIGKILL after its KillWait (30 s unless the site says otherwise). muster run passes SIGTERM on to the
workers at once. For more time give --signal=TERM@120 and --shutdown-timeout=110; with --requeue
Slurm starts the job again afterwards, under another run id.

Exit codes: those of sbatch; 2 the command line is wrong; 4 sbatch cannot be run.
)";

int Mistake(const std::string& sentence) {
  std::fprintf(stderr, "muster sbatch: %s\n", sentence.c_str());
  return kExitBadInput;
}

int Submit(const std::string& script) {
  const base::UniqueFd file(::memfd_create("muster-sbatch", MFD_CLOEXEC));
  const bool written =
      file.get() >= 0 &&
      ::write(file.get(), script.data(), script.size()) == static_cast<ssize_t>(script.size()) &&
      ::lseek(file.get(), 0, SEEK_SET) == 0 && ::dup2(file.get(), STDIN_FILENO) >= 0;
  if (written) ::execlp("sbatch", "sbatch", nullptr);
  std::fprintf(stderr,
               "muster sbatch: cannot run sbatch: %s; is Slurm installed here? `muster sbatch "
               "--dry-run` prints the script\n",
               std::strerror(errno));
  return kExitNodeFailed;
}

}  // namespace

int SbatchCommand(std::vector<std::string> args) {
  const auto end = std::find(args.begin(), args.end(), "--");
  std::vector<std::string> flags(args.begin(), end);
  const bool dry_run = !flags.empty() && flags.front() == "--dry-run";
  if (dry_run) flags.erase(flags.begin());
  if (!flags.empty() && (flags.front() == "--help" || flags.front() == "-h")) {
    return Answer("muster sbatch", kSbatchHelp);
  }
  if (end == args.end() || end + 1 == args.end()) {
    return Mistake(
        "nothing follows --, so there is nothing to run; write `muster sbatch [sbatch's flags] -- "
        "[flags of muster run] script [arguments]`");
  }
  const auto script = BatchScript(flags, OwnProgram(), {end + 1, args.end()});
  if (!script.ok()) return Mistake(std::string(script.status().message()));
  return dry_run ? Answer("muster sbatch", *script) : Submit(*script);
}

}  // namespace muster::launcher
