#include "launcher/machine/environment.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "base/failure.h"
#include "base/safe_path.h"
#include "base/text.h"

namespace muster::launcher {

Environment ReadEnvironment(const char* const* block) {
  Environment environment;
  for (; block != nullptr && *block != nullptr; ++block) {
    const std::string_view entry = *block;
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return environment;
}

std::vector<std::string> ToBlock(const Environment& environment) {
  std::vector<std::string> block;
  block.reserve(environment.size());
  for (const auto& [name, value] : environment) block.push_back(name + "=" + value);
  return block;
}

std::string GetOr(const Environment& environment, const std::string& name,
                  const std::string& fallback) {
  const auto found = environment.find(name);
  return found == environment.end() || found->second.empty() ? fallback : found->second;
}

std::optional<int> TakeInheritedFd(Environment& environment, const std::string& name) {
  const auto variable = environment.extract(name);
  int fd = -1;
  if (!variable || !absl::SimpleAtoi(variable.mapped(), &fd) || fd <= STDERR_FILENO ||
      ::fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
    return std::nullopt;
  }
  return fd;
}

std::optional<int> TakeSpeechFd(Environment& environment) {
  return TakeInheritedFd(environment, kSpeechVariable);
}

namespace {

constexpr const char* kVariables[] = {"TMPDIR", "TEMP", "TMP"};

// An error's message is the cause alone.
absl::Status TryToWrite(const std::string& directory) {
  const absl::StatusOr<base::UniqueFd> place = base::OpenDirectory(directory);
  if (!place.ok()) return place.status();
  const std::string name = absl::StrCat("muster-", base::RandomName(12));
  const base::UniqueFd file(::openat(place->get(), name.c_str(),
                                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return absl::FailedPreconditionError(base::SystemCause());
  // On a full disk creating the file works, and only the write fails.
  const bool written = ::write(file.get(), "m", 1) == 1;
  const std::string cause = base::SystemCause();
  ::unlinkat(place->get(), name.c_str(), 0);
  return written ? absl::OkStatus() : absl::FailedPreconditionError(cause);
}

}  // namespace

TempDir FindTempDir(const Environment& environment, const std::vector<std::string>& usual) {
  TempDir found;
  std::string refused;
  const auto use = [&](const std::string& directory) {
    std::error_code error;
    const std::string path = std::filesystem::absolute(directory, error);
    const absl::Status status = error ? absl::NotFoundError(error.message()) : TryToWrite(path);
    if (status.ok()) found.path = path;
    return status;
  };
  for (const char* const variable : kVariables) {
    const std::string directory = GetOr(environment, variable, "");
    if (directory.empty()) continue;
    const absl::Status status = use(directory);
    if (status.ok()) break;
    if (refused.empty()) {
      refused = absl::StrCat(variable, "=", directory, " cannot be used (", status.message(), ")");
    }
  }
  for (auto next = usual.begin(); found.path.empty() && next != usual.end(); ++next) {
    use(*next).IgnoreError();
  }
  if (!refused.empty()) {
    found.note = found.path.empty()
                     ? absl::StrCat(refused, ", and no other temporary directory can be written")
                     : absl::StrCat(refused, "; temporary files go to ", found.path);
  }
  return found;
}

TempDir FindTempDir(const Environment& environment) {
  std::error_code ignored;
  return FindTempDir(environment, {"/tmp", "/var/tmp", "/usr/tmp",
                                   std::filesystem::current_path(ignored).string()});
}

}  // namespace muster::launcher
