#include "base/cli/command.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace muster::base {

std::vector<std::string> ChoicesOf(const Flag& flag) {
  std::vector<std::string> choices;
  const std::vector<absl::string_view> words = absl::StrSplit(flag.value_name, '|');
  if (words.size() < 2) return choices;
  for (const absl::string_view word : words) {
    const bool literal = std::all_of(word.begin(), word.end(), [](unsigned char c) {
      return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-' || c == '.';
    });
    if (literal && !word.empty()) choices.emplace_back(word);
  }
  return choices;
}

namespace {

// How a value or an operand is completed.
enum class Kind { kNone, kChoice, kDirectory, kFile, kOther };

Kind KindOfName(absl::string_view name) {
  if (absl::StrContains(name, "DIR")) return Kind::kDirectory;
  for (const char* file : {"FILE", "PATH", "SCRIPT"}) {
    if (absl::StrContains(name, file)) return Kind::kFile;
  }
  return name.empty() ? Kind::kNone : Kind::kOther;
}

Kind ValueKindOf(const Flag& flag) {
  if (!TakesValue(flag)) return Kind::kNone;
  return ChoicesOf(flag).empty() ? KindOfName(flag.value_name) : Kind::kChoice;
}

Kind OperandKindOf(const Command& command) {
  Kind kind = KindOfName(command.operands);
  for (const Verb& verb : command.verbs) {
    if (kind != Kind::kFile) kind = KindOfName(verb.operands);
  }
  return kind;
}

std::vector<const Flag*> FlagsOf(const Command& command) {
  std::vector<const Flag*> flags;
  for (const Flag& flag : command.flags) {
    const bool is_its = flag.only_for.empty() || flag.only_for == command.name;
    if (is_its && !flag.help.empty()) flags.push_back(&flag);
  }
  return flags;
}

// The name with underscores, "--rdzv_id"; empty if it has none.
std::string UnderscoreName(const Flag& flag) {
  const std::string name =
      absl::StrCat("--", absl::StrReplaceAll(flag.name.substr(2), {{"-", "_"}}));
  return name == flag.name ? "" : name;
}

std::vector<std::string> AllNames(const Flag& flag) {
  std::vector<std::string> names = {std::string(flag.name)};
  for (const absl::string_view name : ShortNames(flag)) names.emplace_back(name);
  return names;
}

std::vector<std::string> VerbsOf(const Command& command) {
  std::vector<std::string> verbs;
  for (const Verb& verb : command.verbs) verbs.emplace_back(verb.name);
  return verbs;
}

// The first sentence of a help text.
absl::string_view FirstSentence(absl::string_view help) {
  const std::size_t end = help.find(". ");
  return end == absl::string_view::npos ? absl::StripSuffix(help, ".") : help.substr(0, end);
}

bool HasScript(const Command& command) {
  return command.order == Command::Order::kScript;
}

// Text between @s is filled in from the rows.
constexpr char kBashScript[] = R"(# bash completion for muster and torchrun.

_muster_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "$2")
}

# Completes $2, the value of flag $1.
_muster_value() {
  case ${1//_/-} in
@VALUES@    *) COMPREPLY=() ;;
  esac
}

_muster_operand() {
  if [[ -n $operands ]]; then _muster_files "$operands" "$1"; fi
}

_muster() {
  COMPREPLY=()
  # Readline breaks words at '=' and ':', which are inside one argument here.
  local -a words=()
  local i n=-1
  for ((i = 0; i <= COMP_CWORD; i++)); do
    if ((n > 0)) && [[ ${COMP_WORDS[i]} == [=:]* || ${words[n]} == -*[=:] ]]; then
      words[n]+=${COMP_WORDS[i]}
    else
      words[++n]=${COMP_WORDS[i]}
    fi
  done
  local current=${words[n]} first=1 command=run flags values verbs= operands= script=

  if [[ ${words[0]##*/} != torchrun ]]; then
    if ((n == 1)); then
      COMPREPLY=($(compgen -W "@COMMANDS@ help --help --version" -- "$current"))
      return
    fi
    first=2 command=${words[1]}
  fi
  case $command in
    help) COMPREPLY=($(compgen -W "@COMMANDS@" -- "$current")); return ;;
@CASES@    *) return ;;
  esac
  if [[ -n $verbs && $current != -* ]] && ((n == first)); then
    COMPREPLY=($(compgen -W "$verbs" -- "$current"))
    return
  fi

  # Flags end at the script.
  for ((i = first; i < n; i++)); do
    if [[ ${words[i]} == -- ]]; then
      ((i + 1 < n)) || break
      _muster_operand "$current"
      return
    elif [[ $values == *" ${words[i]//_/-} "* ]]; then
      ((i++))
    elif [[ ${words[i]} != -* && -n $script ]]; then
      _muster_operand "$current"
      return
    fi
  done
  if ((i > n)); then
    _muster_value "${words[n - 1]}" "$current"
  elif [[ $current == --*=* ]]; then
    _muster_value "${current%%=*}" "${current#*=}"
  elif [[ $current == -* ]]; then
    # Either spelling finds the flag.
    COMPREPLY=($(compgen -W "$flags" -- "${current//_/-}"))
  else
    _muster_operand "$current"
  fi
}

complete -F _muster muster torchrun
)";

std::string BashValue(const Flag& flag) {
  const Kind kind = ValueKindOf(flag);
  if (kind == Kind::kDirectory) return "_muster_files -d \"$2\"";
  if (kind == Kind::kFile) return "_muster_files -f \"$2\"";
  if (kind != Kind::kChoice) return "";
  return absl::StrCat("COMPREPLY=($(compgen -W \"", absl::StrJoin(ChoicesOf(flag), " "),
                      "\" -- \"$2\"))");
}

std::string NamesOf(absl::Span<const Command> commands) {
  return absl::StrJoin(commands, " ", [](std::string* out, const Command& command) {
    absl::StrAppend(out, command.name);
  });
}

std::string BashCompletion(absl::Span<const Command> commands) {
  std::map<std::string, std::string> values;  // a flag means the same in all commands
  std::string cases;
  for (const Command& command : commands) {
    std::vector<std::string> names;
    std::string with_value = " ";
    for (const Flag* flag : FlagsOf(command)) {
      for (const std::string& name : AllNames(*flag)) {
        names.push_back(name);
        if (TakesValue(*flag)) absl::StrAppend(&with_value, name, " ");
      }
      if (const std::string value = BashValue(*flag); !value.empty()) {
        values.emplace(absl::StrJoin(AllNames(*flag), " | "), value);
      }
    }
    absl::StrAppend(&cases, "    ", command.name, ") flags=\"", absl::StrJoin(names, " "),
                    "\" values=\"", with_value, "\"");
    if (!command.verbs.empty()) {
      absl::StrAppend(&cases, " verbs=\"", absl::StrJoin(VerbsOf(command), " "), "\"");
    }
    const Kind operands = OperandKindOf(command);
    if (operands == Kind::kFile) absl::StrAppend(&cases, " operands=-f");
    if (operands == Kind::kDirectory) absl::StrAppend(&cases, " operands=-d");
    if (HasScript(command)) absl::StrAppend(&cases, " script=1");
    absl::StrAppend(&cases, " ;;\n");
  }
  std::string value_cases;
  for (const auto& [pattern, value] : values) {
    absl::StrAppend(&value_cases, "    ", pattern, ") ", value, " ;;\n");
  }
  return absl::StrReplaceAll(
      kBashScript,
      {{"@COMMANDS@", NamesOf(commands)}, {"@CASES@", cases}, {"@VALUES@", value_cases}});
}

// -A ends the flags at the script; a spec with '!' is accepted but not offered.
constexpr char kZshScript[] = R"(#compdef muster torchrun
# zsh completion for muster and torchrun.

_muster() {
  if [[ $service != torchrun ]]; then
    local -a commands=(
@COMMANDS@    )
    if ((CURRENT == 2)); then
      _describe command commands
      return
    fi
    shift words
    ((CURRENT--))
  else
    words[1]=run
  fi
  case $words[1] in
    help) _describe command commands ;;
@CASES@  esac
}

compdef _muster muster torchrun
)";

// `text` quoted for single quotes, and for the brackets or message of a spec.
std::string ZshQuoted(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"'", "'\\''"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}, {"`", "\\`"}});
}

std::string ZshAction(Kind kind) {
  return kind == Kind::kDirectory ? "_files -/" : kind == Kind::kFile ? "_files" : "";
}

// The spec of the flag under one of its names; `glue` joins a value to it: "=" or "+".
std::string ZshSpec(const Flag& flag, absl::string_view name, absl::string_view glue) {
  std::string spec = absl::StrCat("'", name, TakesValue(flag) ? glue : "", "[",
                                  ZshQuoted(FirstSentence(flag.help)), "]");
  if (TakesValue(flag)) {
    const Kind kind = ValueKindOf(flag);
    absl::StrAppend(&spec, ":", ZshQuoted(flag.value_name), ":",
                    kind == Kind::kChoice
                        ? absl::StrCat("(", absl::StrJoin(ChoicesOf(flag), " "), ")")
                        : ZshAction(kind));
  }
  return absl::StrCat(" \\\n      ", spec, "'");
}

std::string ZshOperands(const Command& command) {
  const std::string action = ZshAction(OperandKindOf(command));
  if (HasScript(command)) return " \\\n      '1:script:_files' \\\n      '*:argument:_files'";
  std::string specs;
  if (!command.verbs.empty()) {
    specs = absl::StrCat(" \\\n      '1:command:(", absl::StrJoin(VerbsOf(command), " "), ")'");
  } else if (command.operands.empty()) {
    return "";
  }
  return absl::StrCat(specs, " \\\n      '*:argument:", action, "'");
}

std::string ZshCompletion(absl::Span<const Command> commands) {
  std::string list;
  std::string cases;
  for (const Command& command : commands) {
    absl::StrAppend(&list, "      '", command.name, ":", ZshQuoted(command.summary), "'\n");
    absl::StrAppend(&cases, "    ", command.name, ") _arguments -s -S",
                    HasScript(command) ? " -A '-*'" : "");
    for (const Flag* flag : FlagsOf(command)) {
      cases += ZshSpec(*flag, flag->name, "=");
      const std::string underscores = UnderscoreName(*flag);
      if (!underscores.empty()) cases += ZshSpec(*flag, absl::StrCat("!", underscores), "=");
      for (const absl::string_view name : ShortNames(*flag)) {
        cases += ZshSpec(*flag, name, name.size() == 2 ? "+" : "");
      }
    }
    absl::StrAppend(&cases, ZshOperands(command), " ;;\n");
  }
  return absl::StrReplaceAll(kZshScript, {{"@COMMANDS@", list}, {"@CASES@", cases}});
}

// A line for each flag and command follows.
constexpr char kFishScript[] = R"(# fish completion for muster and torchrun.

function __muster_is_command
    set -l words (commandline -opc)
    test (count $words) -ge 2; and contains -- $words[2] $argv
end

# Whether the script is still to come.
function __muster_wants_flags
    set -l words (commandline -opc)
    if not string match -q -- '*torchrun' $words[1]
        __muster_is_command $argv; or return 1
        set -e words[1]
    end
    set -e words[1]
    set -l value_flags @VALUE_FLAGS@
    set -l is_value 0
    for word in $words
        if test $is_value = 1
            set is_value 0
        else if contains -- $word $value_flags
            set is_value 1
        else if not string match -q -- '-*' $word
            return 1
        end
    end
end

complete -c muster -n 'test (count (commandline -opc)) -eq 1' -f -a '@COMMANDS@ help'
complete -c muster -n '__muster_is_command help' -f -a '@COMMANDS@'
)";

std::string FishQuoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string FishValue(const Flag& flag) {
  const Kind kind = ValueKindOf(flag);
  if (kind == Kind::kDirectory) return " -x -a '(__fish_complete_directories)'";
  if (kind == Kind::kFile) return " -r -F";
  if (kind != Kind::kChoice) return kind == Kind::kNone ? "" : " -x";
  return absl::StrCat(" -x -a ", FishQuoted(absl::StrJoin(ChoicesOf(flag), " ")));
}

std::string FishFlag(const Flag& flag, absl::string_view program, absl::string_view condition) {
  std::string line =
      absl::StrCat("complete -c ", program, " -n '", condition, "' -l ", flag.name.substr(2));
  for (const absl::string_view name : ShortNames(flag)) {
    absl::StrAppend(&line, name.size() == 2 ? " -s " : " -o ", name.substr(1));
  }
  return absl::StrCat(line, FishValue(flag), " -d ", FishQuoted(FirstSentence(flag.help)), "\n");
}

std::string FishCompletion(absl::Span<const Command> commands) {
  std::vector<std::string> value_flags;
  std::string lines;
  for (const Command& command : commands) {
    const std::string condition = absl::StrCat(
        HasScript(command) ? "__muster_wants_flags " : "__muster_is_command ", command.name);
    for (const Flag* flag : FlagsOf(command)) {
      lines += FishFlag(*flag, "muster", condition);
      if (command.name == "run") lines += FishFlag(*flag, "torchrun", condition);
      if (!HasScript(command) || !TakesValue(*flag)) continue;
      for (const std::string& name : AllNames(*flag)) value_flags.push_back(name);
      if (const std::string name = UnderscoreName(*flag); !name.empty())
        value_flags.push_back(name);
    }
    if (!command.verbs.empty()) {
      absl::StrAppend(&lines, "complete -c muster -n '", condition,
                      "; and test (count (commandline -opc)) -eq 2' -f -a '",
                      absl::StrJoin(VerbsOf(command), " "), "'\n");
    }
    const Kind kind = OperandKindOf(command);
    if (kind == Kind::kFile) continue;
    absl::StrAppend(&lines, "complete -c muster -n '", condition, "' -f",
                    kind == Kind::kDirectory ? " -a '(__fish_complete_directories)'" : "", "\n");
  }
  return absl::StrReplaceAll(kFishScript, {{"@VALUE_FLAGS@", absl::StrJoin(value_flags, " ")},
                                           {"@COMMANDS@", NamesOf(commands)}}) +
         lines;
}

}  // namespace

std::string CompletionScript(Shell shell, absl::Span<const Command> commands) {
  switch (shell) {
    case Shell::kBash:
      return BashCompletion(commands);
    case Shell::kZsh:
      return ZshCompletion(commands);
    case Shell::kFish:
      return FishCompletion(commands);
  }
  return "";
}

}  // namespace muster::base
