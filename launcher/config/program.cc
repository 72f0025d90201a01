#include "launcher/config/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "launcher/config/run_path.h"
#include "worker/process/program.h"

namespace muster::launcher {
namespace {

bool IsFile(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode);
}

bool IsDirectory(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool IsExecutable(const std::string& path) {
  return access(path.c_str(), X_OK) == 0;
}

bool HasSlash(const std::string& name) {
  return absl::StrContains(name, '/');
}

// So that execvp() does not look for a file of this directory along PATH.
std::string AsPath(const std::string& file) {
  return HasSlash(file) ? file : absl::StrCat("./", file);
}

// The file that `name` means along PATH; nothing when there is none that can be run.
std::optional<std::string> FindInPath(const std::string& name, const Environment& environment) {
  const auto path = environment.find("PATH");
  const auto found =
      worker::FindProgram(name, path == environment.end() ? nullptr : path->second.c_str());
  return found.ok() ? std::optional(*found) : std::nullopt;
}

bool IsElf(const std::string& path) {
  std::string start(4, '\0');
  std::ifstream(path, std::ios::binary).read(start.data(), 4);
  return start ==
         "\x7f"
         "ELF";
}

// The words that the kernel puts before a script: of "#!/usr/bin/env -S bash -e" the path, and what
// follows it as one argument. Empty when the file does not begin with "#!".
std::vector<std::string> InterpreterOf(const std::string& path) {
  std::string start(256, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<std::size_t>(file.gcount()));
  absl::string_view line = absl::string_view(start).substr(0, start.find('\n'));
  if (!absl::ConsumePrefix(&line, "#!")) return {};
  line = absl::StripAsciiWhitespace(line);
  if (line.empty()) return {};
  const std::size_t blank = std::min(line.find_first_of(" \t"), line.size());
  const absl::string_view argument = absl::StripLeadingAsciiWhitespace(line.substr(blank));
  std::vector<std::string> words = {std::string(line.substr(0, blank))};
  if (!argument.empty()) words.emplace_back(argument);
  return words;
}

absl::Status CannotRun(absl::string_view name, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("cannot run '", name, "': ", why));
}

absl::StatusOr<std::string> FindPython(const std::string& script, const Environment& environment) {
  const std::string chosen = GetOr(environment, "PYTHON_EXEC", "");
  if (!chosen.empty()) {
    if (HasSlash(chosen) ? IsExecutable(chosen) : FindInPath(chosen, environment).has_value()) {
      return chosen;
    }
    return CannotRun(script, absl::StrCat("PYTHON_EXEC=", chosen, " is not an executable"));
  }
  for (const char* name : {"python3", "python"}) {
    if (auto path = FindInPath(name, environment)) return *path;
  }
  return CannotRun(script,
                   "it needs Python, and PATH has neither python3 nor python; set PYTHON_EXEC");
}

// The words that run the file `script`: Python's, or its own.
absl::StatusOr<std::vector<std::string>> FileWords(const std::string& script,
                                                   const Environment& environment) {
  std::vector<std::string> interpreter = InterpreterOf(script);
  // The kernel runs no script without such a line, whatever its mode; a shell does.
  const bool plain_shell = interpreter.empty() && absl::EndsWith(script, ".sh") && !IsElf(script);
  const bool executable = IsExecutable(script) && !plain_shell;
  if (plain_shell) interpreter = {"/bin/sh"};
  if (absl::EndsWith(script, ".py") || (interpreter.empty() && !executable) ||
      absl::StrContains(absl::StrJoin(interpreter, " "), "python")) {
    auto python = FindPython(script, environment);
    if (!python.ok()) return python.status();
    return std::vector<std::string>{*python, "-u", script};
  }
  if (executable) return std::vector<std::string>{AsPath(script)};
  if (!IsExecutable(interpreter.front())) {
    return CannotRun(script, absl::StrCat("its first line asks for ", interpreter.front(),
                                          ", which is not an executable here; correct that line"));
  }
  interpreter.push_back(AsPath(script));
  return interpreter;
}

// The words that come before the script's arguments.
absl::StatusOr<std::vector<std::string>> ScriptWords(const std::string& script,
                                                     const Environment& environment) {
  if (IsDirectory(script)) return CannotRun(script, "is a directory");
  if (IsFile(script)) return FileWords(script, environment);
  if (!HasSlash(script)) {
    if (auto path = FindInPath(script, environment)) return std::vector<std::string>{*path};
  }
  return CannotRun(script, "no such file");
}

absl::StatusOr<std::vector<std::string>> ModuleWords(const std::string& module,
                                                     const Environment& environment) {
  auto python = FindPython(module, environment);
  if (!python.ok()) return python.status();
  return std::vector<std::string>{*python, "-u", "-m", module};
}

absl::StatusOr<std::vector<std::string>> RunPathWords(const std::string& script,
                                                      const Environment& environment) {
  if (!IsFile(script))
    return CannotRun(script, IsDirectory(script) ? "is a directory" : "no such file");
  auto python = FindPython(script, environment);
  if (!python.ok()) return python.status();
  return std::vector<std::string>{*python, "-u", "-c", kRunPathProgram, script};
}

absl::StatusOr<std::vector<std::string>> CommandWords(const std::string& command,
                                                      const Environment& environment) {
  if (!HasSlash(command)) {
    if (auto path = FindInPath(command, environment)) return std::vector<std::string>{*path};
    return CannotRun(command, IsFile(command) ? absl::StrCat("not in PATH; write ./", command,
                                                             " for the file in this directory")
                                              : "no such command in PATH");
  }
  if (IsDirectory(command)) return CannotRun(command, "is a directory");
  if (!IsFile(command)) return CannotRun(command, "no such file");
  if (!IsExecutable(command)) {
    return CannotRun(command,
                     "it is not executable; chmod +x it, or drop --no-python for a script");
  }
  return std::vector<std::string>{command};
}

}  // namespace

absl::StatusOr<Program> MakeProgram(const std::vector<std::string>& command, ProgramKind kind,
                                    const Environment& environment) {
  const std::string& first = command.front();
  auto words = kind == ProgramKind::kModule    ? ModuleWords(first, environment)
               : kind == ProgramKind::kRunPath ? RunPathWords(first, environment)
               : kind == ProgramKind::kCommand ? CommandWords(first, environment)
                                               : ScriptWords(first, environment);
  if (!words.ok()) return words.status();
  Program program{.name = first, .argv = *std::move(words)};
  program.argv.insert(program.argv.end(), command.begin() + 1, command.end());
  return program;
}

}  // namespace muster::launcher
