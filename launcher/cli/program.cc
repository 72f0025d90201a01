#include "launcher/cli/program.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "base/failure.h"
#include "worker/process/spawn.h"

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

// Files that can be read only once, such as a pipe, are Python's to read.
bool IsRegular(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool HasMain(const std::string& directory) {
  return IsFile(directory + "/__main__.py") || IsFile(directory + "/__main__.pyc");
}

struct FirstLine {
  // The words that the kernel puts before a script: of "#!/usr/bin/env -S bash -e" the path, and
  // what follows it as one argument. Empty when the file does not begin with "#!".
  std::vector<std::string> words;
  // It ends as lines of Windows do, and the kernel would look for an interpreter of that name.
  bool has_carriage_return = false;
};

FirstLine FirstLineOf(const std::string& path) {
  std::string start(4096, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<std::size_t>(file.gcount()));
  absl::string_view line = absl::string_view(start).substr(0, start.find('\n'));
  FirstLine result;
  if (!absl::ConsumePrefix(&line, "#!")) return result;
  result.has_carriage_return = absl::EndsWith(line, "\r");
  line = absl::StripAsciiWhitespace(line);
  if (line.empty()) return result;
  const std::size_t blank = std::min(line.find_first_of(" \t"), line.size());
  const absl::string_view argument = absl::StripLeadingAsciiWhitespace(line.substr(blank));
  result.words.emplace_back(line.substr(0, blank));
  if (!argument.empty()) result.words.emplace_back(argument);
  return result;
}

absl::string_view BaseName(absl::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// What `env` would start: of "-S PYTHONHASHSEED=0 python -u" it is python.
absl::string_view NameInEnv(absl::string_view argument) {
  for (absl::string_view word :
       absl::StrSplit(argument, absl::ByAnyChar(" \t"), absl::SkipEmpty())) {
    if (absl::ConsumePrefix(&word, "-S") && word.empty()) continue;
    if (absl::StartsWith(word, "-") || absl::StrContains(word, '=')) continue;
    return word;
  }
  return "";
}

bool NamesPython(const FirstLine& line) {
  if (line.words.empty()) return false;
  absl::string_view name = BaseName(line.words.front());
  if (name == "env" && line.words.size() > 1) name = BaseName(NameInEnv(line.words[1]));
  return absl::StartsWith(name, "python");
}

absl::Status CannotRun(absl::string_view name, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("cannot run '", name, "': ", why));
}

// Why a file that is there is not one that can be executed.
const char* WhyNotExecutable(const std::string& path) {
  struct statvfs system {};
  return statvfs(path.c_str(), &system) == 0 && (system.f_flag & ST_NOEXEC) != 0
             ? "its file system is mounted noexec; move it to another"
             : "it is not executable; chmod +x it";
}

// Why there is no such file.
std::string WhyMissing(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
    std::error_code ignored;
    return absl::StrCat("it is a symbolic link to ",
                        std::filesystem::read_symlink(path, ignored).string(),
                        ", which cannot be reached");
  }
  return errno == ENOENT ? "no such file" : base::SystemCause();
}

struct Python {
  std::string path;
  // As Program's.
  std::string note;
};

absl::StatusOr<Python> FindPython(const std::string& script, const Environment& environment) {
  const std::string chosen = GetOr(environment, "PYTHON_EXEC", "");
  const std::string wanted = GetOr(environment, kPythonOfCommand, "");
  const auto is_here = [&](const std::string& python) {
    return HasSlash(python) ? IsExecutable(python) : FindInPath(python, environment).has_value();
  };
  if (!chosen.empty() && chosen != wanted) {
    if (is_here(chosen)) return Python{chosen, ""};
    return CannotRun(script, absl::StrCat("PYTHON_EXEC=", chosen, " is not an executable"));
  }
  if (!wanted.empty() && is_here(wanted)) return Python{wanted, ""};
  const std::string lacks = wanted.empty()
                                ? ""
                                : absl::StrCat("this host does not have ", wanted,
                                               ", the Python where the command was typed");
  for (const char* name : {"python3", "python"}) {
    const auto path = FindInPath(name, environment);
    if (!path) continue;
    if (lacks.empty()) return Python{*path, ""};
    return Python{*path, absl::StrCat(lacks, "; its workers run under ", *path,
                                      " (--export=PYTHON_EXEC=PATH names another)")};
  }
  if (!lacks.empty()) {
    return CannotRun(script, absl::StrCat(lacks,
                                          ", and its PATH has neither python3 nor python; "
                                          "name one with --export=PYTHON_EXEC=PATH"));
  }
  return CannotRun(script,
                   "it needs Python, and PATH has neither python3 nor python; set PYTHON_EXEC");
}

// The Python that a program's first line names, if it belongs to a virtual environment, venv's or
// conda's, that is not active.
std::optional<std::string> OwnPython(const FirstLine& line, const Environment& environment) {
  if (!NamesPython(line) || !absl::StartsWith(line.words.front(), "/")) return std::nullopt;
  const std::filesystem::path python = line.words.front();
  const std::filesystem::path bin = python.parent_path(), prefix = bin.parent_path();
  if (!IsExecutable(python) ||
      (!IsFile(prefix / "pyvenv.cfg") && !IsDirectory(prefix / "conda-meta"))) {
    return std::nullopt;
  }
  const auto active = FindInPath("python3", environment);
  if (active && std::filesystem::path(*active).parent_path() == bin) return std::nullopt;
  return python;
}

using Words = std::vector<std::string>;

// Python's words for `script`, and its note.
absl::StatusOr<Program> UnderPython(const Words& before, const std::string& script,
                                    const Environment& environment) {
  auto python = FindPython(script, environment);
  if (!python.ok()) return python.status();
  Program program{.name = script, .argv = {python->path, "-u"}, .note = python->note};
  program.argv.insert(program.argv.end(), before.begin(), before.end());
  // Python takes "-" for its standard input, and anything else that begins so for an option.
  const bool like_option = before.empty() && script != "-" && absl::StartsWith(script, "-");
  program.argv.push_back(like_option ? AsPath(script) : script);
  return program;
}

// The words that run the file `script`: Python's, or its own.
absl::StatusOr<Program> OfFile(const std::string& script, const Environment& environment) {
  if (!IsRegular(script)) return UnderPython({}, script, environment);
  FirstLine first = FirstLineOf(script);
  const bool is_elf = IsElf(script);
  const bool has_py = absl::EndsWith(script, ".py");
  // The kernel runs no script without such a line, whatever its mode; a shell does.
  if (first.words.empty() && !is_elf && absl::EndsWith(script, ".sh")) {
    first = {.words = {"/bin/sh"}, .has_carriage_return = true};
  }
  if (has_py || NamesPython(first) || (first.words.empty() && !is_elf)) {
    if (access(script.c_str(), R_OK) != 0) {
      return CannotRun(script, absl::StrCat("it cannot be read (", base::SystemCause(), ")"));
    }
    const auto own = OwnPython(first, environment);
    // A script may name a Python that its user has left; a program lies beside its own.
    const std::filesystem::path folder = std::filesystem::path(script).parent_path();
    std::error_code ignored;
    if (own && (!has_py || std::filesystem::equivalent(
                               folder, std::filesystem::path(*own).parent_path(), ignored))) {
      Words words = std::move(first.words);
      words.insert(words.end(), {"-u", AsPath(script)});
      return Program{.name = script, .argv = std::move(words)};
    }
    return UnderPython({}, script, environment);
  }
  if (is_elf) {
    if (!IsExecutable(script)) return CannotRun(script, WhyNotExecutable(script));
    return Program{.name = script, .argv = {AsPath(script)}};
  }
  if (!IsExecutable(first.words.front())) {
    return CannotRun(script, absl::StrCat("its first line asks for ", first.words.front(),
                                          ", which is not an executable here; correct that line"));
  }
  if (IsExecutable(script) && !first.has_carriage_return) {
    return Program{.name = script, .argv = {AsPath(script)}};
  }
  first.words.push_back(AsPath(script));
  return Program{.name = script, .argv = std::move(first.words)};
}

// A directory is Python's if it has what Python would run.
absl::Status CheckDirectory(const std::string& directory) {
  if (HasMain(directory)) return absl::OkStatus();
  return CannotRun(directory, "it is a directory without a __main__.py, which Python would run");
}

absl::StatusOr<Program> OfScript(const std::string& script, const Environment& environment) {
  if (script == "-") return UnderPython({}, script, environment);
  if (IsDirectory(script)) {
    if (absl::Status status = CheckDirectory(script); !status.ok()) return status;
    return UnderPython({}, script, environment);
  }
  if (IsFile(script)) return OfFile(script, environment);
  const std::string why = WhyMissing(script);
  if (HasSlash(script)) return CannotRun(script, why);
  if (auto path = FindInPath(script, environment)) return Program{.name = script, .argv = {*path}};
  return CannotRun(
      script, absl::EndsWith(script, ".py") ? why : absl::StrCat(why, ", nor a command in PATH"));
}

absl::StatusOr<Program> OfRunPath(const std::string& script, const Environment& environment) {
  if (IsDirectory(script)) {
    if (absl::Status status = CheckDirectory(script); !status.ok()) return status;
  } else if (!IsFile(script)) {
    return CannotRun(script, WhyMissing(script));
  }
  return UnderPython({"-c", kRunPathProgram}, script, environment);
}

absl::StatusOr<Program> OfCommand(const std::string& command, const Environment& environment) {
  if (!HasSlash(command)) {
    if (auto path = FindInPath(command, environment)) {
      return Program{.name = command, .argv = {*path}};
    }
    return CannotRun(command, IsFile(command) ? absl::StrCat("not in PATH; write ./", command,
                                                             " for the file in this directory")
                                              : "no such command in PATH");
  }
  if (IsDirectory(command)) return CannotRun(command, "is a directory");
  if (!IsFile(command)) return CannotRun(command, WhyMissing(command));
  if (!IsExecutable(command)) {
    return CannotRun(command,
                     absl::StrCat(WhyNotExecutable(command), ", or drop --no-python for a script"));
  }
  return Program{.name = command, .argv = {command}};
}

}  // namespace

absl::StatusOr<Program> MakeProgram(const std::vector<std::string>& command, ProgramKind kind,
                                    const Environment& environment) {
  const std::string& first = command.front();
  auto program = kind == ProgramKind::kModule    ? UnderPython({"-m"}, first, environment)
                 : kind == ProgramKind::kRunPath ? OfRunPath(first, environment)
                 : kind == ProgramKind::kCommand ? OfCommand(first, environment)
                                                 : OfScript(first, environment);
  if (!program.ok()) return program.status();
  program->argv.insert(program->argv.end(), command.begin() + 1, command.end());
  return program;
}

std::string PythonHere(const Environment& environment) {
  const auto python = FindPython("", environment);
  if (!python.ok()) return "";
  std::error_code error;
  const auto path = std::filesystem::absolute(python->path, error);
  return error || !HasSlash(python->path) ? python->path : path.string();
}

}  // namespace muster::launcher
