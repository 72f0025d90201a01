// Feeds command lines and environments of any content to what reads them, for libFuzzer
// (scripts/fuzz.sh) and for fuzz_seeds_test: those of `muster run`, of `muster launch` and of
// `musterd`, and lists of filters. The first byte chooses which; then words
// follow, each ended by a line feed. One that begins with a name in capitals and "=" is a variable.
//
// In addition to the sanitizers' checks: a mistake is told in one line that says something, and
// what is taken holds what the rest of the program takes for granted.
#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "launcher/cli/flag_table.h"
#include "launcher/cli/flags.h"
#include "rendezvous/core/values/phrases.h"
#include "rendezvous/server_config.h"
#include "test/fuzz/fuzz.h"

namespace muster {
namespace {

bool IsVariable(absl::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == absl::string_view::npos || equals == 0) return false;
  for (const char c : word.substr(0, equals)) {
    if (!absl::ascii_isupper(c) && !absl::ascii_isdigit(c) && c != '_') return false;
  }
  return true;
}

void CheckConfig(const launcher::LaunchConfig& config) {
  Check(config.nproc_per_node >= 1);
  Check(config.min_nodes >= 1 && config.min_nodes <= config.max_nodes);
  Check(config.node_rank.value_or(0) >= 0);
  Check(rendezvous::CheckName("run id", config.run_id).ok());
  Check(!config.program.name.empty());
}

void CheckRun(const std::vector<std::string>& args, const launcher::Environment& environment,
              launcher::Dialect dialect) {
  constexpr launcher::Machine kMachine = {.cpus = 6, .nvidia_devices = 2};
  const launcher::ParsedRun parsed = launcher::ParseRun(args, dialect, environment, kMachine);
  if (const auto* const config = std::get_if<launcher::LaunchConfig>(&parsed)) {
    CheckConfig(*config);
  } else if (const auto* const hosts = std::get_if<launcher::HostsRun>(&parsed)) {
    Check(!hosts->hosts.empty() && hosts->fanout >= 1 && hosts->min_nodes >= 1);
    Check(rendezvous::CheckName("run id", hosts->run_id).ok());
  } else if (const auto* const step = std::get_if<launcher::SlurmStep>(&parsed)) {
    Check(step->nodes >= 1 && !step->args.empty());
  } else if (const auto* const error = std::get_if<launcher::UsageError>(&parsed)) {
    Check(!error->sentence.empty());
  } else if (const auto* const text = std::get_if<launcher::TextRequest>(&parsed)) {
    Check(!text->text.empty());
  }
}

void CheckDaemon(const std::vector<std::string>& args) {
  const auto parsed = rendezvous::ParseServerConfig(args);
  const auto* const exit = std::get_if<rendezvous::EarlyExit>(&parsed);
  if (exit != nullptr) {
    Check(!exit->text.empty() && exit->exit_code >= 0);
    return;
  }
  const auto& config = std::get<rendezvous::ServerConfig>(parsed);
  Check(!config.listen.host.empty() && config.drain_timeout.count() >= 0);
}

void CheckFilters(absl::string_view text) {
  for (const std::string& filter : launcher::SplitFilters(text)) Check(!filter.empty());
}

}  // namespace
}  // namespace muster

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using muster::launcher::Dialect;
  if (size == 0) return 0;
  std::vector<std::string> args;
  // There, so that a script can be found in it, and nothing else is.
  muster::launcher::Environment environment = {{"PATH", "/usr/bin"}};
  const absl::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (const absl::string_view word : absl::StrSplit(text, '\n')) {
    // A word of a command line cannot hold a NUL.
    const std::string own(word.substr(0, word.find('\0')));
    if (muster::IsVariable(own)) {
      const std::size_t equals = own.find('=');
      environment[own.substr(0, equals)] = own.substr(equals + 1);
    } else {
      args.push_back(own);
    }
  }
  // CLI11 makes its parser anew each time, which takes longer than all the others.
  switch (data[0] % 32) {
    case 0:
      muster::CheckDaemon(args);
      break;
    case 1:
      muster::CheckRun(args, environment, Dialect::kLaunch);
      break;
    case 2:
      muster::CheckFilters(text);
      break;
    default:
      muster::CheckRun(args, environment, Dialect::kRun);
  }
  return 0;
}
