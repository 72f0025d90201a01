// muster: find the command, run it, return its exit code.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/cli/command.h"
#include "base/program.h"
#include "base/text.h"
#include "base/version.h"
#include "launcher/cli/command_run.h"
#include "launcher/commands/commands.h"
#include "launcher/remote/host_process.h"
#include "launcher/remote/link_command.h"

namespace {

using muster::base::Command;
using muster::launcher::Fail;
using muster::launcher::PrintOutput;
using enum muster::launcher::ExitCode;
using Args = std::vector<std::string>;
using Commands = std::vector<Command>;

std::string Help(const Commands& commands) {
  return muster::base::ListOfCommands(
      commands,
      "usage: muster COMMAND [ARGUMENTS]\n"
      "\n"
      "Starts distributed training jobs and keeps them running.\n",
      "  `muster help COMMAND` and `muster COMMAND --help` show its details. Called as torchrun,\n"
      "  it is `muster run`; `muster -m torch.distributed.run` and `.launch` are `muster run` and\n"
      "  `launch`. musterd is the rendezvous daemon for many jobs.\n");
}

const Command* Find(const Commands& commands, absl::string_view name) {
  const auto found = std::find_if(commands.begin(), commands.end(),
                                  [name](const Command& command) { return command.name == name; });
  return found == commands.end() ? nullptr : &*found;
}

bool AsksForHelp(absl::string_view arg) {
  return arg == "--help" || arg == "-h" || arg == "help";
}

// What follows the name of a command that there is not. `command` may be what torchrun's would be:
// a script, or one of the flags of `muster run`.
std::string Advice(const Commands& commands, const std::string& command) {
  const bool is_flag = command.starts_with('-');
  std::vector<absl::string_view> known = {"--help", "--version"};
  if (!is_flag) {
    known = {"help"};
    for (const Command& one : commands) known.push_back(one.name);
  }
  const absl::string_view meant = muster::base::NearestWord(command, known);
  if (!meant.empty()) return absl::StrCat("did you mean `muster ", meant, "`?");
  if (is_flag || command.find_first_of("./") != std::string::npos) {
    return absl::StrCat("did you mean `muster run ", command, " ...`?");
  }
  return "`muster help` lists the commands";
}

int Unknown(const Commands& commands, const std::string& command) {
  return Fail("muster",
              absl::StrCat("unknown command '", command, "'; ", Advice(commands, command)),
              kExitBadInput);
}

// `muster help COMMAND`; without one, or where `help` itself is asked about, the list of commands.
int TellHelp(const Commands& commands, const Args& about) {
  if (about.empty() || AsksForHelp(about.front())) return PrintOutput("muster", Help(commands));
  const Command* const command = Find(commands, about.front());
  if (command == nullptr) return Unknown(commands, about.front());
  return PrintOutput("muster", muster::base::HelpText(*command));
}

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
  muster::base::SetUpSignals();
  muster::base::LendCommandLine(argc, argv);
  const Args args = AsCommand(argv[0], Args(argv + 1, argv + argc));
  const std::string command = args.empty() ? "" : args.front();
  const Args rest(args.empty() ? args.begin() : args.begin() + 1, args.end());
  const Commands commands = muster::launcher::Commands();
  if (const Command* const known = Find(commands, command)) {
    return known->run({*known, rest, commands});
  }
  if (command == muster::launcher::kHostCommand) return muster::launcher::HostCommand();
  if (AsksForHelp(command)) return TellHelp(commands, rest);
  if (command == "--version") {
    return PrintOutput("muster", absl::StrCat("muster ", muster::base::kVersion, "\n"));
  }
  if (!args.empty()) return Unknown(commands, command);
  std::fputs(Help(commands).c_str(), stderr);
  return kExitBadInput;
}
