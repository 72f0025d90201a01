#include "launcher/commands/run.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "base/cli/command.h"
#include "base/program.h"
#include "base/redact.h"
#include "launcher/cli/command_run.h"
#include "launcher/cli/flags.h"
#include "launcher/cli/program.h"
#include "launcher/commands/commands.h"
#include "launcher/run/interruptions.h"
#include "launcher/run/rank_layout.h"
#include "launcher/run/rendezvous_access.h"
#include "launcher/run/terminal_settings.h"
#include "launcher/views/config_view.h"

namespace muster::launcher {
namespace {

// What each worker would get, as far as it can be known before the start.
int DryRun(const LaunchConfig& config, const Environment& environment, const Machine& machine) {
  const TempDir temp = FindTempDir(environment);
  absl::StatusOr<NodeBase> base = MakeNodeBase(config, environment, machine, temp.path);
  if (!base.ok()) {
    std::fprintf(stderr, "muster run: %s\n", std::string(base.status().message()).c_str());
    return kExitNodeFailed;
  }
  base->rendezvous = RendezvousEndpoint(config);
  for (const std::string& note : config.notes)
    std::fprintf(stderr, "muster run: %s\n", note.c_str());
  if (!temp.note.empty()) std::fprintf(stderr, "muster run: %s\n", temp.note.c_str());
  const AttemptLogs logs = SupposedLogs(config, temp.path);
  const std::string text =
      DryRunText(config, environment, LayOutRanks(config, SupposedAssignment(config), *base, logs));
  return PrintOutput("muster run", text);
}

// Does as `run` says, in another process if the user asks for that.
template <typename Run>
int RunHereOrDetached(bool detach, const std::string& run_id, const Environment& environment,
                      Run run) {
  if (!detach) return run();
  auto outcome = Detach(run_id, environment);
  if (const int* const done = std::get_if<int>(&outcome)) return *done;
  const int exit_code = run();
  std::get<DetachedRun>(outcome).Finish(exit_code);
  return exit_code;
}

template <Dialect kDialect>
int RunAs(const base::Call& call) {
  const std::string name = base::FullName(call.command);
  Environment environment = ReadEnvironment(environ);
  const std::optional<int> speech_fd = TakeSpeechFd(environment);
  const std::optional<int> orders_fd = TakeOrdersFd(environment);
  const Machine machine = LookAtMachine();
  ParsedRun parsed = ParseRun(call.args, kDialect, environment, machine);
  environment.erase(kPythonOfCommand);
  if (const auto* error = std::get_if<UsageError>(&parsed)) {
    dprintf(speech_fd.value_or(STDERR_FILENO), "%s: %s\n", name.c_str(), error->sentence.c_str());
    return kExitBadInput;
  }
  if (const auto* text = std::get_if<TextRequest>(&parsed)) {
    return PrintOutput(name.c_str(), text->text);
  }
  if (const auto* shell = std::get_if<base::Shell>(&parsed)) {
    return PrintOutput(name.c_str(), base::CompletionScript(*shell, call.commands));
  }
  if (auto* const hosts = std::get_if<HostsRun>(&parsed)) {
    return RunHereOrDetached(hosts->detach, hosts->run_id, environment,
                             [&] { return LaunchHosts(std::move(*hosts)); });
  }
  if (const auto* const step = std::get_if<SlurmStep>(&parsed)) return StartStep(*step);
  LaunchConfig& config = std::get<LaunchConfig>(parsed);
  if (config.purpose == Purpose::kPrintConfig) {
    return PrintOutput("muster run", ConfigText(config, base::Redactor(ToBlock(environment))));
  }
  if (config.purpose == Purpose::kDryRun) return DryRun(config, environment, machine);
  if (const absl::Status fit = base::CheckKernel(); !fit.ok()) {
    dprintf(speech_fd.value_or(STDERR_FILENO), "muster run: %s\n",
            std::string(fit.message()).c_str());
    return kExitNodeFailed;
  }
  return RunHereOrDetached(config.detach, config.run_id, Environment(environment), [&] {
    // Never destroyed: a thread of gRPC's may still post to it while the program ends.
    static auto* const io = new boost::asio::io_context(1);
    // What reads this process's output in a pipeline, such as less, sets the terminal as well.
    const TerminalSettings terminal(isatty(STDOUT_FILENO) ? STDIN_FILENO : -1);
    const int exit_code =
        RunNode(*io, std::move(config), std::move(environment), machine, speech_fd, orders_fd);
    // Of what succeeded it may be the purpose.
    if (exit_code != 0) terminal.Restore();
    return exit_code;
  });
}

}  // namespace

base::Command RunCommand() {
  base::Command command = RunRow(Dialect::kRun);
  command.run = RunAs<Dialect::kRun>;
  return command;
}

base::Command LaunchCommand() {
  base::Command command = RunRow(Dialect::kLaunch);
  command.run = RunAs<Dialect::kLaunch>;
  return command;
}

}  // namespace muster::launcher
