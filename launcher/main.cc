// muster: find the command, run it, return its exit code.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/companion.h"
#include "base/stdio.h"
#include "base/version.h"
#include "launcher/commands/answer.h"
#include "launcher/commands/attach.h"
#include "launcher/commands/doctor.h"
#include "launcher/commands/gpus.h"
#include "launcher/commands/host.h"
#include "launcher/commands/kv.h"
#include "launcher/commands/logs.h"
#include "launcher/commands/manifest.h"
#include "launcher/commands/ps.h"
#include "launcher/commands/replay.h"
#include "launcher/commands/run.h"
#include "launcher/commands/sbatch.h"
#include "launcher/commands/status.h"
#include "launcher/commands/stop.h"
#include "launcher/commands/store.h"
#include "launcher/commands/token.h"
#include "launcher/commands/top.h"
#include "launcher/hosts/link_command.h"
#include "launcher/report/exit_code.h"

namespace {

using muster::launcher::Dialect;
using enum muster::launcher::ExitCode;
using Args = std::vector<std::string>;

constexpr char kHelp[] =
    "usage: muster COMMAND [ARGUMENTS]\n"
    "\n"
    "Starts distributed training jobs and keeps them running.\n"
    "\n"
    "commands:\n"
    "  run       start this node's workers of a job; takes torchrun's command line.\n"
    "            With --hosts: start the job on every host, from here\n"
    "  launch    the same for scripts written for python -m torch.distributed.launch\n"
    "  ps        list the runs on this machine\n"
    "  attach    show what a run prints that was started with --detach\n"
    "  stop      end runs on this machine\n"
    "  doctor    say what is wrong with machines before a job finds out\n"
    "  gpus      list the GPUs of this machine, and whether they are fit\n"
    "  status    show the jobs of a rendezvous, and who is waited for\n"
    "  top       show them on the whole terminal, as they change\n"
    "  logs      show what a job's workers print, wherever they run\n"
    "  replay    show what happened to a job, from the event logs of its nodes\n"
    "  kv        read and write a job's key-value store; for scripts\n"
    "  store     serve a store for torch.distributed on its own\n"
    "  sbatch    submit a job to Slurm\n"
    "  manifest  print a job for Kubernetes\n"
    "  token     make the secret that the nodes of jobs prove to each other\n"
    "\n"
    "  muster COMMAND --help tells all about it. Called as torchrun, it is `muster run`;\n"
    "  `muster -m torch.distributed.run` and `.launch` are `muster run` and `launch`.\n"
    "  musterd is the rendezvous daemon for many jobs.\n";

// The arguments as `muster COMMAND ...`, whichever of the names that users know was called.
Args AsCommand(const std::string& program, Args args) {
  const std::string name = program.substr(program.rfind('/') + 1);
  if (name == "torchrun") {
    args.insert(args.begin(), "run");
  } else if (args.size() >= 2 && args[0] == "-m" && args[1].starts_with("torch.distributed.")) {
    const std::string module = args[1].substr(args[1].rfind('.') + 1);
    if (module == "run" || module == "launch") {
      args.erase(args.begin());
      args[0] = module;
    }
  }
  return args;
}

}  // namespace

int main(int argc, char** argv) {
  muster::base::FillStdio();
  muster::base::LendCommandLine(argc, argv);
  const Args args = AsCommand(argv[0], Args(argv + 1, argv + argc));
  const std::string command = args.empty() ? "" : args.front();
  const Args rest(args.empty() ? args.begin() : args.begin() + 1, args.end());
  if (command == "run") return muster::launcher::RunCommand(rest, Dialect::kRun);
  if (command == "launch") return muster::launcher::RunCommand(rest, Dialect::kLaunch);
  if (command == "ps") return muster::launcher::PsCommand(rest);
  if (command == "attach") return muster::launcher::AttachCommand(rest);
  if (command == "stop") return muster::launcher::StopCommand(rest);
  if (command == "doctor") return muster::launcher::DoctorCommand(rest);
  if (command == "gpus") return muster::launcher::GpusCommand(rest);
  if (command == "status") return muster::launcher::StatusCommand(rest);
  if (command == "top") return muster::launcher::TopCommand(rest);
  if (command == "logs") return muster::launcher::LogsCommand(rest);
  if (command == "replay") return muster::launcher::ReplayCommand(rest);
  if (command == "kv") return muster::launcher::KvCommand(rest);
  if (command == "store") return muster::launcher::StoreCommand(rest);
  if (command == "sbatch") return muster::launcher::SbatchCommand(rest);
  if (command == "manifest") return muster::launcher::ManifestCommand(rest);
  if (command == "token") return muster::launcher::TokenCommand(rest);
  if (command == muster::launcher::kHostCommand) return muster::launcher::HostCommand();
  if (command == "--help" || command == "-h" || command == "help") {
    return muster::launcher::Answer("muster", kHelp);
  }
  if (command == "--version") {
    return muster::launcher::Answer("muster",
                                    absl::StrCat("muster ", muster::base::kVersion, "\n"));
  }
  if (command.empty()) {
    std::fputs(kHelp, stderr);
  } else {
    std::fprintf(stderr, "muster: unknown command '%s'; did you mean `muster run %s ...`?\n",
                 command.c_str(), command.c_str());
  }
  return kExitBadInput;
}
