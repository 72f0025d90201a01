#include "worker/hang/stack_command.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "worker/process/program.h"

namespace muster::worker {
namespace {

constexpr char kPid[] = "{pid}";

// gdb without the user's own settings, which may ask questions.
constexpr char kGdb[] = "gdb -nx -p {pid} -batch -ex 'thread apply all bt'";
constexpr char kEuStack[] = "eu-stack -p {pid}";
constexpr char kPySpy[] = "py-spy dump --pid {pid}";

}  // namespace

absl::StatusOr<StackCommand> StackCommand::Parse(std::string_view text) {
  std::vector<std::string> words;
  // '' is a word, too, so an empty one is told from none.
  std::optional<std::string> word;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quote != '\'') {
      if (++i == text.size()) return absl::InvalidArgumentError("ends in a backslash");
      if (!word.has_value()) word.emplace();
      *word += text[i];
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        *word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      if (!word.has_value()) word.emplace();
    } else if (c == ' ' || c == '\t') {
      if (word.has_value()) words.push_back(*std::exchange(word, std::nullopt));
    } else {
      if (!word.has_value()) word.emplace();
      *word += c;
    }
  }
  if (quote != 0) return absl::InvalidArgumentError("has a quote that is not closed");
  if (word.has_value()) words.push_back(*std::move(word));
  if (words.empty() || words[0].empty()) return absl::InvalidArgumentError("names no program");
  if (std::none_of(words.begin() + 1, words.end(),
                   [](const std::string& each) { return absl::StrContains(each, kPid); })) {
    return absl::InvalidArgumentError(
        "does not say which process is meant; write {pid} in its arguments, as in 'gdb -p {pid} "
        "-batch -ex bt'");
  }
  return StackCommand(std::move(words));
}

std::vector<std::string> StackCommand::ArgvFor(pid_t pid) const {
  std::vector<std::string> argv;
  for (const std::string& word : words_) {
    argv.push_back(absl::StrReplaceAll(word, {{kPid, std::to_string(pid)}}));
  }
  return argv;
}

std::optional<StackCommand> PickStackCommand(
    const std::function<bool(const std::string& program)>& is_installed, bool is_python) {
  for (const char* text : {kPySpy, kGdb, kEuStack}) {
    if (text == kPySpy && !is_python) continue;
    StackCommand command = *StackCommand::Parse(text);
    if (is_installed(command.program())) return command;
  }
  return std::nullopt;
}

bool IsInstalled(const std::string& program) {
  return FindProgram(program, std::getenv("PATH")).ok();
}

}  // namespace muster::worker
