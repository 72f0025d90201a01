#include "worker/process/spawn.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/failure.h"

namespace muster::worker {
namespace {

// glibc's default for execvp if PATH is unset.
constexpr char kDefaultPath[] = "/bin:/usr/bin";

// The interpreter in the first line of a script ("#!/usr/bin/env python3"); empty if it is not a
// script.
std::string InterpreterOf(const std::string& program) {
  std::ifstream file(program, std::ios::binary);
  std::string line(256, '\0');  // as much as the kernel reads
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(file.gcount()));
  line = line.substr(0, line.find('\n'));
  absl::string_view rest = line;
  if (!absl::ConsumePrefix(&rest, "#!")) return "";
  // As in the kernel, only these are blanks: a carriage return is part of the name.
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  return std::string(rest.substr(0, rest.find_first_of(" \t")));
}

std::string CauseOf(const std::string& program, int error) {
  struct stat info;
  const bool exists = ::stat(program.c_str(), &info) == 0;
  if (error == ENOENT && exists) {
    const std::string interpreter = InterpreterOf(program);
    if (interpreter.empty()) return "its dynamic loader is missing";
    if (interpreter.back() == '\r') {
      return "the first line ends in a carriage return (saved with Windows line ends?)";
    }
    return absl::StrCat("interpreter ", interpreter, " is missing");
  }
  if (error == EACCES && exists) {
    if (S_ISDIR(info.st_mode)) return "Is a directory";
    if ((info.st_mode & 0111) == 0) return "Permission denied (not executable)";
  }
  if (error == ENOEXEC)
    return "Exec format error (neither a program nor a script that starts with #!)";
  return base::SystemCause(error);
}

}  // namespace

absl::StatusOr<std::string> FindProgram(const std::string& name, const char* path) {
  if (name.find('/') != std::string::npos) return name;
  std::string not_executable;
  for (absl::string_view directory : absl::StrSplit(path != nullptr ? path : kDefaultPath, ':')) {
    // An empty entry of PATH means the current directory.
    std::string candidate = absl::StrCat(directory.empty() ? "." : directory, "/", name);
    struct stat info;
    if (name.empty() || ::stat(candidate.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    if (not_executable.empty()) not_executable = std::move(candidate);
  }
  if (!not_executable.empty()) return ExecError(not_executable, EACCES);
  return absl::NotFoundError(absl::StrCat(name, ": not found in PATH"));
}

absl::Status ExecError(const std::string& program, int error) {
  const std::string sentence = absl::StrCat(program, ": ", CauseOf(program, error));
  if (error == ENOENT) return absl::NotFoundError(sentence);
  if (error == EACCES) return absl::PermissionDeniedError(sentence);
  return absl::FailedPreconditionError(sentence);
}

}  // namespace muster::worker
