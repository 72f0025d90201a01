#include "launcher/hosts/batch_script.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "launcher/hosts/link_command.h"

namespace muster::launcher {
namespace {

// As sbatch reads its lines: double quotes hold a word together, a backslash stands before what
// would end them.
std::string SbatchQuoted(absl::string_view word) {
  constexpr absl::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=.,:/@%+[]*";
  if (!word.empty() && word.find_first_not_of(kPlain) == absl::string_view::npos) {
    return std::string(word);
  }
  std::string quoted = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

absl::StatusOr<std::string> BatchScript(const std::vector<std::string>& flags,
                                        const std::string& program,
                                        const std::vector<std::string>& run) {
  std::string script = "#!/bin/sh";
  for (const std::string& word : flags) {
    const bool is_flag = word.size() > 1 && word.front() == '-';
    if (&word == &flags.front() && !is_flag) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", word, "' is no flag of sbatch's; what is to be run follows --"));
    }
    if (word.find('\n') != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a flag of sbatch's has a line break in it: ", word.substr(0, word.find('\n')),
          "...; sbatch reads a flag to the end of its line"));
    }
    // A value stays on the line of its flag.
    absl::StrAppend(&script, is_flag ? "\n#SBATCH " : " ", SbatchQuoted(word));
  }
  absl::StrAppend(&script, "\nexec srun --ntasks-per-node=1 ", ShellQuoted(program), " run");
  for (const std::string& word : run) absl::StrAppend(&script, " ", ShellQuoted(word));
  return script + "\n";
}

}  // namespace muster::launcher
