// What each flag does with its value. A setter puts the value into `flags`, or says what is wrong
// with it and leaves `flags` as it was. The value of a switch is "1", or what its environment
// variable says.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "launcher/flags/run_flags.h"

namespace muster::launcher {

// What is wrong with a value: a phrase that follows the text it is about ("is not a number; ..."),
// or nothing.
using Problem = std::optional<std::string>;
using Setter = Problem (*)(absl::string_view value, RunFlags& flags);

Problem SetNodes(absl::string_view value, RunFlags& flags);
Problem SetNproc(absl::string_view value, RunFlags& flags);
Problem SetNodeRank(absl::string_view value, RunFlags& flags);
Problem SetRole(absl::string_view value, RunFlags& flags);
Problem SetStandalone(absl::string_view value, RunFlags& flags);
Problem SetEndpoint(absl::string_view value, RunFlags& flags);
Problem SetRdzvId(absl::string_view value, RunFlags& flags);
Problem SetBackend(absl::string_view value, RunFlags& flags);
Problem SetRdzvConf(absl::string_view value, RunFlags& flags);
Problem SetMasterAddr(absl::string_view value, RunFlags& flags);
Problem SetMasterPort(absl::string_view value, RunFlags& flags);
Problem SetLocalAddr(absl::string_view value, RunFlags& flags);
Problem SetModule(absl::string_view value, RunFlags& flags);
Problem SetNoPython(absl::string_view value, RunFlags& flags);
Problem SetMaxRestarts(absl::string_view value, RunFlags& flags);
Problem SetShutdownTimeout(absl::string_view value, RunFlags& flags);
Problem SetExitCode(absl::string_view value, RunFlags& flags);
Problem SetLogDir(absl::string_view value, RunFlags& flags);
Problem SetRedirects(absl::string_view value, RunFlags& flags);
Problem SetTee(absl::string_view value, RunFlags& flags);
Problem SetLogLevel(absl::string_view value, RunFlags& flags);
Problem SetHelp(absl::string_view value, RunFlags& flags);
Problem SetTotalWorkers(absl::string_view value, RunFlags& flags);
Problem SetDevices(absl::string_view value, RunFlags& flags);
Problem SetVirtualLocalRank(absl::string_view value, RunFlags& flags);
Problem SetNumaBinding(absl::string_view value, RunFlags& flags);
Problem SetWorkerStore(absl::string_view value, RunFlags& flags);
Problem SetRunPath(absl::string_view value, RunFlags& flags);
Problem SetStartMethod(absl::string_view value, RunFlags& flags);
Problem SetUseEnv(absl::string_view value, RunFlags& flags);
Problem SetLocalRankStyle(absl::string_view value, RunFlags& flags);
Problem SetSignalsToHandle(absl::string_view value, RunFlags& flags);
Problem SetMonitorInterval(absl::string_view value, RunFlags& flags);
Problem SetExitBarrierTimeout(absl::string_view value, RunFlags& flags);
Problem SetLocalRanksFilter(absl::string_view value, RunFlags& flags);
Problem SetPrefixTemplate(absl::string_view value, RunFlags& flags);
Problem SetStdoutFilters(absl::string_view value, RunFlags& flags);
Problem SetStderrFilters(absl::string_view value, RunFlags& flags);
Problem SetLogsSpecs(absl::string_view value, RunFlags& flags);
Problem SetEventLogHandler(absl::string_view value, RunFlags& flags);
Problem SetEventLog(absl::string_view value, RunFlags& flags);
Problem SetDryRun(absl::string_view value, RunFlags& flags);
Problem SetPrintConfig(absl::string_view value, RunFlags& flags);
Problem SetPrintCompletion(absl::string_view value, RunFlags& flags);
Problem SetScaleUp(absl::string_view value, RunFlags& flags);
Problem SetRestartDelay(absl::string_view value, RunFlags& flags);
Problem SetRestartWindow(absl::string_view value, RunFlags& flags);
Problem SetNoProgressLimit(absl::string_view value, RunFlags& flags);
Problem SetFinalExitCodes(absl::string_view value, RunFlags& flags);
Problem SetHangTimeout(absl::string_view value, RunFlags& flags);
Problem SetFirstBeatTimeout(absl::string_view value, RunFlags& flags);
Problem SetHangSigns(absl::string_view value, RunFlags& flags);
Problem SetHangAction(absl::string_view value, RunFlags& flags);
Problem SetStackCommand(absl::string_view value, RunFlags& flags);
Problem SetHealthCheck(absl::string_view value, RunFlags& flags);
Problem SetHealthCheckTimeout(absl::string_view value, RunFlags& flags);
Problem SetVersion(absl::string_view value, RunFlags& flags);

}  // namespace muster::launcher
