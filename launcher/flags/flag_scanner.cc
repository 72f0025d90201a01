#include "launcher/flags/flag_scanner.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "launcher/flags/flag_names.h"
#include "launcher/flags/flag_table.h"

namespace muster::launcher {
namespace {

// An argument such as "--nnodes=2", "--nnodes", "-r3" or "-r", taken apart.
struct FlagArg {
  const Flag* flag = nullptr;
  absl::string_view spelling;
  // What stands in the same argument; the value may also be the next argument.
  std::optional<absl::string_view> attached;
};

absl::string_view CommandOf(Dialect dialect) {
  return dialect == Dialect::kLaunch ? "muster launch" : "muster run";
}

absl::Status UnknownFlag(absl::string_view name, absl::string_view meant, Dialect dialect) {
  return absl::InvalidArgumentError(
      meant.empty() ? absl::StrCat("unknown flag '", name, "'; `", CommandOf(dialect),
                                   " --help` lists the flags; the script's own go after the script")
                    : absl::StrCat("unknown flag '", name, "'; did you mean ", meant, "?"));
}

// The flag that is meant where one dash is missing: "-nnodes=2" is not -n with the value "nodes=2".
absl::string_view WithDashMissing(absl::string_view name) {
  if (name.size() < 3 || absl::StartsWith(name, "--")) return "";
  const std::vector<const Flag*> matches = MatchFlags(absl::StrCat("-", name));
  return matches.size() == 1 ? matches.front()->name : "";
}

bool Has(Dialect dialect, const Flag& flag) {
  return flag.of == Flag::Of::kBoth || dialect == Dialect::kLaunch;
}

absl::StatusOr<FlagArg> TakeApart(absl::string_view arg, Dialect dialect) {
  FlagArg result;
  const std::size_t equals = arg.find('=');
  result.spelling = arg.substr(0, equals);
  if (equals != absl::string_view::npos) result.attached = arg.substr(equals + 1);

  std::vector<const Flag*> matches = MatchFlags(result.spelling);
  if (matches.empty()) {
    const absl::string_view meant = WithDashMissing(result.spelling);
    if (!meant.empty()) return UnknownFlag(result.spelling, meant, dialect);
  }
  if (const ShortName first = MatchShortName(arg); matches.empty() && first.flag != nullptr) {
    result.spelling = first.name;
    result.attached = arg.substr(first.name.size());
    matches = {first.flag};
  }
  if (matches.size() == 1 && !Has(dialect, *matches.front())) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", result.spelling, "' is a flag of `muster launch`; use that, or drop it"));
  }
  matches.erase(std::remove_if(matches.begin(), matches.end(),
                               [dialect](const Flag* flag) { return !Has(dialect, *flag); }),
                matches.end());
  if (matches.empty()) {
    const absl::string_view name = arg.substr(0, equals);
    return UnknownFlag(name, NearestFlag(name), dialect);
  }
  if (matches.size() > 1) {
    const auto name = [](std::string* out, const Flag* flag) { absl::StrAppend(out, flag->name); };
    return absl::InvalidArgumentError(absl::StrCat("'", result.spelling, "' could be ",
                                                   absl::StrJoin(matches, " or ", name),
                                                   "; write the name out"));
  }
  result.flag = matches.front();
  return result;
}

// A flag where a value should be means that the value was forgotten. "-1" is a number.
bool LooksLikeFlag(absl::string_view arg) {
  return arg.size() > 1 && arg[0] == '-' && !absl::ascii_isdigit(arg[1]) && arg[1] != '.';
}

absl::Status SetFromEnvironment(const Flag& flag, const Environment& environment, RunFlags& flags) {
  for (const std::string& variable :
       {EnvironmentVariable(flag), std::string(flag.other_variable)}) {
    if (variable.empty()) continue;
    const std::string value = GetOr(environment, variable, "");
    if (value.empty()) continue;
    if (const Problem problem = flag.set(value, flags)) {
      return absl::InvalidArgumentError(
          absl::StrCat("environment variable ", variable, "=", value, " ", *problem));
    }
    break;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ScannedArgs> ScanArgs(const std::vector<std::string>& args, Dialect dialect,
                                     const Environment& environment) {
  ScannedArgs scanned;
  std::set<const Flag*> given;
  std::size_t next = 0;
  while (next < args.size() && args[next].size() > 1 && args[next][0] == '-') {
    const std::size_t first = next;
    const absl::string_view arg = args[next++];
    if (arg == "--") break;
    auto taken = TakeApart(arg, dialect);
    if (!taken.ok()) return taken.status();
    const Flag& flag = *taken->flag;

    absl::string_view value = "1";
    std::string shown(arg);
    if (!TakesValue(flag)) {
      if (taken->attached) {
        return absl::InvalidArgumentError(absl::StrCat("'", arg, "' gives a value to ", flag.name,
                                                       ", which takes none; write it alone"));
      }
    } else if (taken->attached) {
      value = *taken->attached;
    } else if (next < args.size() && !LooksLikeFlag(args[next])) {
      value = args[next++];
      absl::StrAppend(&shown, " ", value);
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("'", arg, "' needs a value; write ", flag.name, "=", flag.value_name));
    }
    if (const Problem problem = flag.set(value, scanned.flags)) {
      return absl::InvalidArgumentError(absl::StrCat(shown, " ", *problem));
    }
    given.insert(&flag);
    if (flag.here_alone) continue;
    scanned.passed_on.insert(scanned.passed_on.end(),
                             args.begin() + static_cast<std::ptrdiff_t>(first),
                             args.begin() + static_cast<std::ptrdiff_t>(next));
  }
  scanned.command.assign(args.begin() + static_cast<std::ptrdiff_t>(next), args.end());

  // Help is there for those whose environment is broken, too.
  if (scanned.flags.help || scanned.flags.version || scanned.flags.print_completion) {
    return scanned;
  }
  for (const Flag& flag : RunFlagTable()) {
    if (given.count(&flag) > 0 || !Has(dialect, flag)) continue;
    const absl::Status status = SetFromEnvironment(flag, environment, scanned.flags);
    if (!status.ok()) return status;
  }
  return scanned;
}

}  // namespace muster::launcher
