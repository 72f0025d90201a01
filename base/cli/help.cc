// The texts of --help.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/cli/command.h"

namespace muster::base {
namespace {

constexpr std::size_t kLastTextColumn = 34;
constexpr std::size_t kWidth = 100;

// `text` in lines that begin at `start`; the first line has `used` columns already.
void AppendWrapped(absl::string_view text, std::size_t start, std::size_t used, std::string& out) {
  std::size_t column = used;
  if (column + 2 > start) {
    out += '\n';
    column = 0;
  }
  out.append(start - column, ' ');
  column = start;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (column > start && column + 1 + word.size() > kWidth) {
      absl::StrAppend(&out, "\n", std::string(start, ' '));
      column = start;
    }
    if (column > start) {
      out += ' ';
      ++column;
    }
    absl::StrAppend(&out, word);
    column += word.size();
  }
  out += '\n';
}

// The text in brackets after a flag's help.
std::string Ending(const Command& command, const Flag& flag) {
  switch (flag.kind) {
    case Flag::Kind::kSwitch:
    case Flag::Kind::kValue:
      if (!flag.default_text.empty()) return absl::StrCat(" [default: ", flag.default_text, "]");
      return command.variable_prefix.empty() ? "" : " [default: off]";
    case Flag::Kind::kIgnored:
      return " [no effect; accepted because torchrun has it]";
    case Flag::Kind::kAsk:
    case Flag::Kind::kText:
      break;
  }
  return "";
}

std::string Names(const Flag& flag) {
  std::string names = "  ";
  for (const absl::string_view name : ShortNames(flag)) absl::StrAppend(&names, name, ", ");
  return absl::StrCat(names, flag.name, flag.value_name.empty() ? "" : "=", flag.value_name);
}

std::string Names(const Verb& verb) {
  return absl::StrCat("  ", verb.name, verb.operands.empty() ? "" : " ", verb.operands);
}

std::string Forms(const Command& command) {
  const std::string usual = absl::StrCat(command.verbs.empty() ? "" : "COMMAND ", "[flags]",
                                         command.operands.empty() ? "" : " ", command.operands);
  const absl::string_view lines = command.forms.empty() ? usual : command.forms;
  std::string forms;
  for (const absl::string_view form : absl::StrSplit(lines, '\n')) {
    absl::StrAppend(&forms, forms.empty() ? "Usage: " : "       ", FullName(command), " ", form,
                    "\n");
  }
  return forms;
}

}  // namespace

std::string HelpText(const Command& command) {
  std::vector<const Flag*> flags;
  std::size_t column = 0;
  for (const Flag& flag : command.flags) {
    if (flag.help.empty() || (!flag.only_for.empty() && flag.only_for != command.name)) continue;
    flags.push_back(&flag);
    column = std::max(column, Names(flag).size() + 2);
  }
  for (const Verb& verb : command.verbs) column = std::max(column, Names(verb).size() + 2);
  column = std::min(column, kLastTextColumn);

  std::string out = absl::StrCat(Forms(command), "\n", command.about);
  if (!command.verbs.empty()) out += '\n';
  for (const Verb& verb : command.verbs) {
    const std::string names = Names(verb);
    out += names;
    AppendWrapped(verb.help, column, names.size(), out);
  }
  absl::string_view group;
  for (const Flag* flag : flags) {
    if (flag->group != group) {
      absl::StrAppend(&out, "\n", flag->group, ":\n");
    } else if (flag == flags.front()) {
      out += '\n';
    }
    group = flag->group;
    const std::string names = Names(*flag);
    out += names;
    AppendWrapped(absl::StrCat(flag->help, Ending(command, *flag)), column, names.size(), out);
  }
  if (!command.end.empty()) absl::StrAppend(&out, "\n", command.end);
  return out;
}

std::string ListOfCommands(absl::Span<const Command> commands, absl::string_view about,
                           absl::string_view end) {
  std::string list = absl::StrCat(about, "\ncommands:\n");
  for (const Command& command : commands) {
    absl::StrAppendFormat(&list, "  %-9s %s\n", command.name, command.summary);
    if (!command.summary_more.empty()) {
      absl::StrAppendFormat(&list, "  %-9s %s\n", "", command.summary_more);
    }
  }
  return absl::StrCat(list, "\n", end);
}

}  // namespace muster::base
