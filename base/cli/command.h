// A command line as rows: one per command, and one per flag. Parsing, --help, suggestions for typos
// and shell completion are all derived from them.
//
// Not CLI11 (2.1.2), which takes the next argument for the value of `--rdzv-conf=`, splits a value
// such as "[a,b]", and supports neither abbreviations nor short names of two letters.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace muster::base {

// A parsed command line. A command derives its own struct from this, with a field for each flag.
struct CommandArgs {
  // --help was given; the rest may be missing or wrong.
  bool help = false;
  // The command line asks for a text: environment and operands were not checked.
  bool asks_for_text = false;
  // The names of the flags on the command line.
  std::set<absl::string_view> given;
  // The verb of a command that has verbs.
  absl::string_view verb;
  // The arguments that are not flags, in order, without the verb.
  std::vector<std::string> operands;
  // How many operands come before "--"; all if there is no "--".
  std::size_t before_dashes = 0;
  // The flags to pass on to other hosts, with their values: those without Flag::local_only.
  std::vector<std::string> passed_on;
};

// What is wrong with a value, a phrase that follows the parsed text ("is not a time; ...");
// nullopt: nothing.
using Problem = std::optional<std::string>;

// Stores the value in `args`, or returns what is wrong with it and leaves `args` unchanged. A
// switch's value is "1", or that of its environment variable.
using Setter = Problem (*)(absl::string_view value, CommandArgs& args);

struct Flag {
  enum class Kind {
    kSwitch,  // takes no value
    kValue,
    kIgnored,  // takes a value, which is checked and then ignored: a flag of torchrun's
    kAsk,      // a switch that no variable sets
    kText,     // the same; prints a text, whatever else is said
  };

  // With dashes ("--rdzv-id"). The spelling with underscores is derived from it, and so is the name
  // of its variable (PET_RDZV_ID) if the command's variables have a prefix.
  absl::string_view name;
  // "-r", or several as "-n|-np", or empty.
  absl::string_view short_name = {};
  Kind kind = Kind::kValue;
  // The only command that has the flag, among several that share rows; empty: all of them.
  absl::string_view only_for = {};
  // The verbs that accept it, as "get|wait"; empty: all.
  absl::string_view verbs = {};
  // False: it has no variable with the command's prefix.
  bool has_variable = true;
  // It applies to the machine where it is typed, and is not passed on to the hosts of a job.
  bool local_only = false;
  // Not a flag of torchrun: an abbreviation never means it if it can mean one of torchrun's.
  bool ours = false;
  // For the help text: the value's name, the flag's effect, and its default. For an ignored flag:
  // why it has no effect. A flag without help is internal and in no list.
  absl::string_view value_name = {};
  absl::string_view help = {};
  absl::string_view default_text = {};
  // Further variables, tried in this order after the one with the prefix: "A|B", or empty.
  absl::string_view variables = {};
  Setter set;
  // Its heading in the help text.
  absl::string_view group = {};
};

// Whether the flag takes a value, in its own argument or in the next one.
bool TakesValue(const Flag& flag);

// A word such as `get` in `muster kv get`, which selects what the command does.
struct Verb {
  absl::string_view name;
  // As Command::operands.
  absl::string_view operands;
  absl::string_view help;
};

struct Command;

// A call of a command: the arguments after its name, and all existing commands.
struct Call {
  const Command& command;
  const std::vector<std::string>& args;
  absl::Span<const Command> commands;
};

struct Command {
  // Where flags may be, and where they end.
  enum class Order {
    kMixed,    // anywhere; everything after "--" is an operand
    kScript,   // before the first operand: the rest belongs to the script
    kForeign,  // before the first argument that is not a flag of ours, as written in the table
  };

  absl::string_view program = "muster";
  absl::string_view name = {};
  // Its summary in the list of commands, and a second line if needed.
  absl::string_view summary = {};
  absl::string_view summary_more = {};
  // The text after the flags: "RUN...", "KEY [VALUE]". Also determines the number of operands,
  // except for commands with a script.
  absl::string_view operands = {};
  // The first lines of the help text, one command line each without the command's name, in place of
  // the derived one.
  absl::string_view forms = {};
  // The help text before and after the flags. Lines of at most 100 columns.
  absl::string_view about = {};
  absl::string_view end = {};
  // The error for too few operands; empty: derived from `operands`.
  absl::string_view missing = {};
  // Follows "unknown flag 'x'; " if no known flag is similar.
  absl::string_view hint = {};
  Order order = Order::kMixed;
  // "PET_": each flag can be set by a variable with this prefix.
  absl::string_view variable_prefix = {};
  absl::Span<const Verb> verbs = {};
  std::vector<Flag> flags = {};
  int (*run)(const Call& call) = nullptr;
};

// "muster stop".
std::string FullName(const Command& command);

// The rows of several tables, and --help.
std::vector<Flag> WithHelp(std::initializer_list<absl::Span<const Flag>> tables);

// The spellings of a flag.

// "PET_RDZV_ID" for "--rdzv-id"; empty for a flag without such a variable.
std::string EnvironmentVariable(const Command& command, const Flag& flag);

// The flags that `name` may mean: the one with exactly that name ("--rdzv-id", "--rdzv_id", "-r"),
// else all whose long name begins with it ("--rdzv" for five of them), as in Python's argparse. If
// only one of those is torchrun's, it is that one.
std::vector<const Flag*> MatchFlags(absl::Span<const Flag> flags, absl::string_view name);

// "-n" and "-np" of "-n|-np".
std::vector<absl::string_view> ShortNames(const Flag& flag);

// Returns the value of a variable; empty: not set.
using Variables = absl::FunctionRef<std::string(const std::string& name)>;

// For this process's environment.
std::string ReadVariable(const std::string& name);

// Parses the arguments after the command's name. A flag that is not given is taken from its
// environment variables; if one is given twice, the last counts. An error's message is a sentence
// for the user.
absl::Status ReadCommandLine(const Command& command, const std::vector<std::string>& line,
                             Variables variables, CommandArgs& args);

// The text of --help: every flag below its group's heading, with its default; lines of at most 100
// columns.
std::string HelpText(const Command& command);

// The output of `program` without a command: `about`, and a line for each command.
std::string ListOfCommands(absl::Span<const Command> commands, absl::string_view about,
                           absl::string_view end);

// How a value is stored: setters for the rows.

template <typename>
struct MemberOf;
template <typename T, typename Class>
struct MemberOf<T Class::*> {
  using Owner = Class;
};

// The struct in `args` that contains `kMember`: the command's own, or a part of it that an overload
// of PartOf(args, Part*) returns.
template <auto kMember>
auto& OwnerIn(CommandArgs& args) {
  using Owner = typename MemberOf<decltype(kMember)>::Owner;
  if constexpr (std::is_base_of_v<CommandArgs, Owner>) {
    return static_cast<Owner&>(args);
  } else {
    return PartOf(args, static_cast<Owner*>(nullptr));
  }
}

// The setter of a flag that only sets a field. `kRead` parses the text into an absl::StatusOr
// (readers.h), and the members lead to the field:
//   .set = Store<ReadSeconds, &LaunchConfig::hang, &HangPolicy::timeout>
template <auto kRead, auto kFirst, auto... kRest>
Problem Store(absl::string_view value, CommandArgs& args) {
  auto read = kRead(value);
  if (!read.ok()) return std::string(read.status().message());
  ((OwnerIn<kFirst>(args).*kFirst).*....*kRest) = *std::move(read);
  return std::nullopt;
}

// The same for a flag that may be repeated: adds to a vector.
template <auto kRead, auto kMember>
Problem Append(absl::string_view value, CommandArgs& args) {
  auto read = kRead(value);
  if (!read.ok()) return std::string(read.status().message());
  (OwnerIn<kMember>(args).*kMember).push_back(*std::move(read));
  return std::nullopt;
}

// The setter of a flag whose value is checked and then ignored.
template <auto kRead>
Problem Check(absl::string_view value, CommandArgs&) {
  const auto read = kRead(value);
  if (read.ok()) return std::nullopt;
  return std::string(read.status().message());
}

template <typename Args>
Args& ArgsOf(Problem (*)(absl::string_view, Args&), CommandArgs& args) {
  return static_cast<Args&>(args);
}

// The setter of a flag that affects several fields: kSet(value, the command's own struct).
template <auto kSet>
Problem Apply(absl::string_view value, CommandArgs& args) {
  return kSet(value, ArgsOf(kSet, args));
}

// Shell completion. The scripts are generated from the rows, so new commands and flags are
// completed automatically.

enum class Shell { kBash, kZsh, kFish };

// A script for `muster` and `torchrun`, which is `muster run`, to be sourced by the shell:
//   bash   source <(muster run --print-completion bash)
//   zsh    source <(muster run --print-completion zsh), after compinit
//   fish   muster run --print-completion fish | source
// Completes commands, their verbs and flags, and values of flags with a choice; and files from the
// place of a script's name on.
std::string CompletionScript(Shell shell, absl::Span<const Command> commands);

// The literal words in a value name such as "N|cpu|gpu|auto": those without capitals.
std::vector<std::string> ChoicesOf(const Flag& flag);

}  // namespace muster::base
