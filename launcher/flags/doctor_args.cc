#include "launcher/flags/doctor_args.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "launcher/flags/flag_help.h"
#include "launcher/flags/flag_names.h"

namespace muster::launcher {
namespace {

constexpr absl::string_view kDoctorFlags[] = {
    "--hosts",    "--hostfile",      "--fanout",     "--launch-with", "--no-ship",
    "--export",   "--rdzv-endpoint", "--token-file", "--token-fd",    "--tls-ca",
    "--tls-cert", "--tls-key",       "--insecure",   "--log-dir"};

bool IsDoctors(const Flag& flag) {
  return std::find(std::begin(kDoctorFlags), std::end(kDoctorFlags), flag.name) !=
         std::end(kDoctorFlags);
}

// The one flag of the doctor's that `name` may stand for, or null.
const Flag* FindDoctorFlag(absl::string_view name) {
  const std::vector<const Flag*> all = MatchFlags(name);
  std::vector<const Flag*> matches;
  std::copy_if(all.begin(), all.end(), std::back_inserter(matches),
               [](const Flag* flag) { return IsDoctors(*flag); });
  if (matches.size() == 1) return matches.front();
  // "-Hnode0".
  const ShortName attached = MatchShortName(name);
  return matches.empty() && attached.flag != nullptr && IsDoctors(*attached.flag) ? attached.flag
                                                                                  : nullptr;
}

}  // namespace

absl::StatusOr<DoctorArgs> ParseDoctorArgs(const std::vector<std::string>& args,
                                           const Environment& environment) {
  DoctorArgs result;
  std::vector<std::string> flags;
  for (std::size_t next = 0; next < args.size(); ++next) {
    const std::string& arg = args[next];
    if (arg == "--help" || arg == "-h") {
      result.help = true;
      return result;
    }
    if (arg == "--json") {
      result.json = true;
      continue;
    }
    if (absl::StartsWith(arg, "--node=")) {
      result.node = arg.substr(std::string_view("--node=").size());
      continue;
    }
    if (arg == "--") {
      result.directories.insert(result.directories.end(),
                                args.begin() + static_cast<std::ptrdiff_t>(next) + 1, args.end());
      break;
    }
    if (arg.size() < 2 || arg[0] != '-') {
      result.directories.push_back(arg);
      continue;
    }
    const std::size_t equals = arg.find('=');
    const std::string name = arg.substr(0, equals);
    const Flag* const flag = FindDoctorFlag(name);
    if (flag == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown flag '", name, "'; see `muster doctor --help`"));
    }
    flags.push_back(arg);
    const bool is_attached =
        equals != std::string::npos || (arg[1] != '-' && MatchShortName(arg).name != arg);
    if (TakesValue(*flag) && !is_attached && next + 1 < args.size()) flags.push_back(args[++next]);
  }
  if (std::find(result.directories.begin(), result.directories.end(), "") !=
      result.directories.end()) {
    return absl::InvalidArgumentError("the name of a directory is empty; was a variable not set?");
  }
  auto scanned = ScanArgs(flags, Dialect::kRun, environment);
  if (!scanned.ok()) return scanned.status();
  result.scanned = *std::move(scanned);
  result.scanned.command = result.directories;
  return result;
}

std::string DoctorFlagsHelp() {
  return FlagsHelp(kDoctorFlags);
}

}  // namespace muster::launcher
