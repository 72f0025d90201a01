// muster: find the command, run it, return its exit code.
#include <cstdio>
#include <string>
#include <vector>

#include "launcher/commands/run.h"
#include "launcher/version.h"

namespace {

constexpr char kHelp[] =
    "usage: muster COMMAND [ARGUMENTS]\n"
    "\n"
    "Starts distributed training jobs and keeps them running.\n"
    "\n"
    "commands:\n"
    "  run    start this node's workers of a job; takes torchrun's command line\n"
    "\n"
    "  muster run --help tells all about it; musterd is the rendezvous daemon for many jobs.\n";

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  const std::string command = args.empty() ? "" : args.front();
  if (command == "run") {
    return muster::launcher::RunCommand({args.begin() + 1, args.end()});
  }
  if (command == "--help" || command == "-h" || command == "help") {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (command == "--version") {
    std::printf("muster %s\n", muster::launcher::kVersion);
    return 0;
  }
  if (command.empty()) {
    std::fputs(kHelp, stderr);
  } else {
    std::fprintf(stderr, "muster: there is no command '%s'; did you mean `muster run %s ...`?\n",
                 command.c_str(), command.c_str());
  }
  return 2;
}
