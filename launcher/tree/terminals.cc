#include "launcher/tree/terminals.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/output/pseudo_terminal.h"

namespace muster::launcher {

launch::v1::Terminals TerminalsHere() {
  launch::v1::Terminals terminals;
  const auto set = [](const worker::WindowSize& size, launch::v1::WindowSize& message) {
    message.set_rows(size.rows);
    message.set_columns(size.columns);
  };
  if (const auto size = worker::ReadWindowSize(STDOUT_FILENO)) set(*size, *terminals.mutable_out());
  if (const auto size = worker::ReadWindowSize(STDERR_FILENO)) set(*size, *terminals.mutable_err());
  return terminals;
}

void AddTerminals(launch::v1::Job& job, const Environment& own) {
  launch::v1::Terminals terminals = TerminalsHere();
  if (!terminals.has_out() && !terminals.has_err()) return;
  *job.mutable_terminals() = std::move(terminals);
  for (const char* const name : {"TERM", "COLORTERM"}) {
    const std::string prefix = absl::StrCat(name, "=");
    const bool is_set = std::any_of(
        job.environment().begin(), job.environment().end(),
        [&](const std::string& variable) { return absl::StartsWith(variable, prefix); });
    const auto found = own.find(name);
    if (!is_set && found != own.end()) job.add_environment(absl::StrCat(prefix, found->second));
  }
}

}  // namespace muster::launcher
