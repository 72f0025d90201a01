#include "base/cli/command.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

#include "base/cli/readers.h"
#include "base/redact.h"
#include "base/text.h"

namespace muster::base {

bool TakesValue(const Flag& flag) {
  return flag.kind == Flag::Kind::kValue || flag.kind == Flag::Kind::kIgnored;
}

std::string FullName(const Command& command) {
  return absl::StrCat(command.program, command.name.empty() ? "" : " ", command.name);
}

std::vector<Flag> WithHelp(std::initializer_list<absl::Span<const Flag>> tables) {
  std::vector<Flag> rows;
  for (const absl::Span<const Flag> table : tables) {
    rows.insert(rows.end(), table.begin(), table.end());
  }
  rows.push_back({.name = "--help",
                  .short_name = "-h",
                  .kind = Flag::Kind::kText,
                  .help = "Print this text.",
                  .set = Store<ReadSwitch, &CommandArgs::help>});
  return rows;
}

std::string EnvironmentVariable(const Command& command, const Flag& flag) {
  const bool takes_none = flag.kind == Flag::Kind::kAsk || flag.kind == Flag::Kind::kText;
  if (takes_none || !flag.has_variable || command.variable_prefix.empty()) return "";
  const absl::string_view bare = flag.name.substr(2);
  return absl::StrCat(command.variable_prefix,
                      absl::AsciiStrToUpper(absl::StrReplaceAll(bare, {{"-", "_"}})));
}

std::vector<absl::string_view> ShortNames(const Flag& flag) {
  return absl::StrSplit(flag.short_name, '|', absl::SkipEmpty());
}

namespace {

// The longest short name at the start of `arg`, and its flag: "-r" of "-r3". Null if there is none.
struct ShortName {
  const Flag* flag = nullptr;
  absl::string_view name;
};

ShortName MatchShortName(absl::Span<const Flag> flags, absl::string_view arg) {
  ShortName longest;
  for (const Flag& flag : flags) {
    for (const absl::string_view name : ShortNames(flag)) {
      if (name.size() > longest.name.size() && absl::StartsWith(arg, name)) longest = {&flag, name};
    }
  }
  return longest;
}

}  // namespace

std::vector<const Flag*> MatchFlags(absl::Span<const Flag> flags, absl::string_view name) {
  std::vector<const Flag*> matches;
  const bool is_long = absl::StartsWith(name, "--");
  const std::string dashed = absl::StrReplaceAll(name, {{"_", "-"}});
  for (const Flag& flag : flags) {
    if (flag.name == dashed) return {&flag};
    if (is_long && !flag.help.empty() && absl::StartsWith(flag.name, dashed)) {
      matches.push_back(&flag);
    }
  }
  const auto is_ours = [](const Flag* flag) { return flag->ours; };
  if (std::count_if(matches.begin(), matches.end(), std::not_fn(is_ours)) == 1) {
    matches.erase(std::remove_if(matches.begin(), matches.end(), is_ours), matches.end());
  }
  if (!is_long) {
    const ShortName short_name = MatchShortName(flags, name);
    if (short_name.name == name) matches = {short_name.flag};
  }
  return matches;
}

std::string ReadVariable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

namespace {

// A parsed argument such as "--nnodes=2", "--nnodes", "-r3" or "-r".
struct FlagArg {
  const Flag* flag = nullptr;
  absl::string_view spelling;
  // The value in the same argument; it may also be the next argument.
  std::optional<absl::string_view> attached;
};

absl::Status Mistake(const Command& command, absl::string_view sentence) {
  return absl::InvalidArgumentError(
      absl::StrCat(sentence, "; see `", FullName(command), " --help`"));
}

bool Has(const Command& command, const Flag& flag) {
  return flag.only_for.empty() || flag.only_for == command.name;
}

// The long name most like `name`, for "did you mean": "--rdzv-endpoint" for "--rdvz_endpoint", and
// "--nproc-per-node" for the shortened "--nprocs". Empty if none is similar.
absl::string_view NearestFlag(const Command& command, absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const Flag& flag : command.flags) {
    if (!flag.help.empty()) names.push_back(flag.name);
  }
  return NearestWord(name, names);
}

absl::Status UnknownFlag(const Command& command, absl::string_view name, absl::string_view meant) {
  const std::string start = absl::StrCat("unknown flag '", name, "'");
  if (!meant.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(start, "; did you mean ", meant, "?"));
  }
  if (command.hint.empty()) return Mistake(command, start);
  return absl::InvalidArgumentError(absl::StrCat(start, "; ", command.hint));
}

// The flag that was meant if a dash is missing: "-nnodes=2" is not -n with the value "nodes=2".
absl::string_view WithDashMissing(absl::Span<const Flag> flags, absl::string_view name) {
  if (name.size() < 3 || absl::StartsWith(name, "--")) return "";
  const std::vector<const Flag*> matches = MatchFlags(flags, absl::StrCat("-", name));
  return matches.size() == 1 ? matches.front()->name : "";
}

absl::StatusOr<FlagArg> TakeApart(const Command& command, absl::string_view arg) {
  FlagArg result;
  const std::size_t equals = arg.find('=');
  result.spelling = arg.substr(0, equals);
  if (equals != absl::string_view::npos) result.attached = arg.substr(equals + 1);

  std::vector<const Flag*> matches = MatchFlags(command.flags, result.spelling);
  if (matches.empty()) {
    const absl::string_view meant = WithDashMissing(command.flags, result.spelling);
    if (!meant.empty()) return UnknownFlag(command, result.spelling, meant);
  }
  if (const ShortName first = MatchShortName(command.flags, arg);
      matches.empty() && first.flag != nullptr) {
    result.spelling = first.name;
    result.attached = arg.substr(first.name.size());
    matches = {first.flag};
  }
  if (matches.size() == 1 && !Has(command, *matches.front())) {
    return absl::InvalidArgumentError(absl::StrCat("'", result.spelling, "' is a flag of `",
                                                   command.program, " ", matches.front()->only_for,
                                                   "`; use that, or drop it"));
  }
  matches.erase(std::remove_if(matches.begin(), matches.end(),
                               [&](const Flag* flag) { return !Has(command, *flag); }),
                matches.end());
  if (matches.empty()) {
    const absl::string_view name = arg.substr(0, equals);
    return UnknownFlag(command, name, NearestFlag(command, name));
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

// A flag in the place of a value means that the value was forgotten. "-1" is a number.
bool LooksLikeFlag(absl::string_view arg) {
  return arg.size() > 1 && arg[0] == '-' && !absl::ascii_isdigit(arg[1]) && arg[1] != '.';
}

bool IsFlag(const Command& command, absl::string_view arg) {
  switch (command.order) {
    case Command::Order::kMixed:
      return LooksLikeFlag(arg);
    case Command::Order::kScript:
      return arg.size() > 1 && arg[0] == '-';
    case Command::Order::kForeign:
      break;
  }
  return std::any_of(command.flags.begin(), command.flags.end(), [arg](const Flag& flag) {
    return arg == flag.name || arg == flag.short_name;
  });
}

// The number of operands, from the help text: "KEY [VALUE]" means one or two.
struct Extent {
  std::size_t least = 0;
  std::size_t most = 0;
};

Extent ExtentOf(absl::string_view operands) {
  Extent extent;
  for (const absl::string_view operand : absl::StrSplit(operands, ' ', absl::SkipEmpty())) {
    if (!absl::StartsWith(operand, "[")) ++extent.least;
    ++extent.most;
    if (absl::StrContains(operand, "...")) extent.most = std::numeric_limits<std::size_t>::max();
  }
  return extent;
}

absl::Status ReadVerb(const Command& command, CommandArgs& args) {
  if (args.operands.empty()) return Mistake(command, "no command is given");
  const std::string word = args.operands.front();
  args.operands.erase(args.operands.begin());
  std::vector<absl::string_view> words;
  for (const Verb& verb : command.verbs) {
    words.push_back(verb.name);
    if (verb.name != word) continue;
    args.verb = verb.name;
    const Extent extent = ExtentOf(verb.operands);
    if (args.operands.size() < extent.least || args.operands.size() > extent.most) {
      return Mistake(command, absl::StrCat("write `", FullName(command), " ", word,
                                           verb.operands.empty() ? "" : " ", verb.operands, "`"));
    }
  }
  if (args.verb.empty()) {
    const absl::string_view meant = NearestWord(word, words);
    const std::string start = absl::StrCat("unknown command '", Redactor()(word), "'");
    if (meant.empty()) return Mistake(command, start);
    return absl::InvalidArgumentError(
        absl::StrCat(start, "; did you mean `", FullName(command), " ", meant, "`?"));
  }
  for (const Flag& flag : command.flags) {
    const std::vector<absl::string_view> verbs = absl::StrSplit(flag.verbs, '|');
    const bool is_its =
        flag.verbs.empty() || std::find(verbs.begin(), verbs.end(), word) != verbs.end();
    if (is_its || !args.given.contains(flag.name)) continue;
    return Mistake(command,
                   absl::StrCat("`", FullName(command), " ", word, "` takes no ", flag.name));
  }
  return absl::OkStatus();
}

absl::Status CheckOperands(const Command& command, CommandArgs& args) {
  if (command.order != Command::Order::kMixed) return absl::OkStatus();
  if (!command.verbs.empty()) return ReadVerb(command, args);
  const Extent extent = ExtentOf(command.operands);
  if (args.operands.size() > extent.most) {
    return Mistake(command, absl::StrCat("unexpected argument '",
                                         Redactor()(args.operands[extent.most]), "'"));
  }
  if (args.operands.size() >= extent.least) return absl::OkStatus();
  if (!command.missing.empty()) return absl::InvalidArgumentError(command.missing);
  return Mistake(command, absl::StrCat("write `", FullName(command), " ", command.operands, "`"));
}

absl::Status SetFromVariables(const Command& command, const Flag& flag, Variables variables,
                              CommandArgs& args) {
  std::vector<std::string> names = absl::StrSplit(flag.variables, '|', absl::SkipEmpty());
  if (std::string first = EnvironmentVariable(command, flag); !first.empty()) {
    names.insert(names.begin(), std::move(first));
  }
  for (const std::string& name : names) {
    const std::string value = variables(name);
    if (value.empty()) continue;
    if (const Problem problem = flag.set(value, args)) {
      return absl::InvalidArgumentError(
          absl::StrCat("environment variable ", name, "=", value, " ", *problem));
    }
    break;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadCommandLine(const Command& command, const std::vector<std::string>& line,
                             Variables variables, CommandArgs& args) {
  std::size_t next = 0;
  std::optional<std::size_t> dashes;
  while (next < line.size() && !dashes) {
    const std::size_t first = next;
    const absl::string_view arg = line[next];
    if (arg == "--" && command.order != Command::Order::kForeign) {
      ++next;
      dashes = args.operands.size();
      break;
    }
    if (!IsFlag(command, arg)) {
      if (command.order != Command::Order::kMixed) break;
      args.operands.emplace_back(arg);
      ++next;
      continue;
    }
    ++next;
    auto taken = TakeApart(command, arg);
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
    } else if (next < line.size() && !LooksLikeFlag(line[next])) {
      value = line[next++];
      absl::StrAppend(&shown, value.empty() ? "" : " ", value);
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("'", arg, "' needs a value; write ", flag.name, "=", flag.value_name));
    }
    if (const Problem problem = flag.set(value, args)) {
      return absl::InvalidArgumentError(absl::StrCat(shown, " ", *problem));
    }
    args.given.insert(flag.name);
    if (flag.kind == Flag::Kind::kText) args.asks_for_text = true;
    if (flag.local_only) continue;
    args.passed_on.insert(args.passed_on.end(), line.begin() + static_cast<std::ptrdiff_t>(first),
                          line.begin() + static_cast<std::ptrdiff_t>(next));
  }
  args.operands.insert(args.operands.end(), line.begin() + static_cast<std::ptrdiff_t>(next),
                       line.end());
  args.before_dashes = dashes.value_or(args.operands.size());

  // Help must work even if the environment is broken.
  if (args.asks_for_text) return absl::OkStatus();
  if (absl::Status fit = CheckOperands(command, args); !fit.ok()) return fit;
  for (const Flag& flag : command.flags) {
    if (args.given.contains(flag.name) || !Has(command, flag)) continue;
    const absl::Status status = SetFromVariables(command, flag, variables, args);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace muster::base
