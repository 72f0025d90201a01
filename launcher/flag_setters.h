// What each flag does with its value. A setter puts the value into `flags`, or says what is wrong
// with it and leaves `flags` as it was. The value of a switch is "1", or what its environment
// variable says.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "launcher/run_flags.h"

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
Problem SetVersion(absl::string_view value, RunFlags& flags);

}  // namespace muster::launcher
