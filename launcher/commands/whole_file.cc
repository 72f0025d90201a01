#include "launcher/commands/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/failure.h"
#include "base/safe_path.h"
#include "base/unique_fd.h"

namespace muster::launcher {
namespace {

constexpr absl::StatusCode kFileTrouble = absl::StatusCode::kFailedPrecondition;

absl::StatusOr<base::UniqueFd> OpenForWhole(const std::string& attempt, const std::string& path,
                                            int flags) {
  absl::StatusOr<base::UniqueFd> file = base::OpenFile(path, flags | O_NOCTTY, 0600);
  if (file.ok()) return file;
  return base::Failure(kFileTrouble, attempt, path, file.status().message());
}

}  // namespace

absl::StatusOr<std::string> ReadWholeFile(const std::string& what, const std::string& path) {
  const std::string attempt = "read " + what;
  const auto file = OpenForWhole(attempt, path, O_RDONLY);
  if (!file.ok()) return file.status();
  std::string text;
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t got = read(file->get(), buffer.data(), buffer.size());
    if (got == 0) return text;
    if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) return base::SystemFailure(kFileTrouble, attempt, path);
  }
}

absl::Status WriteWholeFile(const std::string& what, const std::string& path,
                            absl::string_view text) {
  const std::string attempt = "write " + what;
  const auto file = OpenForWhole(attempt, path, O_WRONLY | O_CREAT);
  if (!file.ok()) return file.status();
  struct stat status {};
  if (fstat(file->get(), &status) == 0 && S_ISREG(status.st_mode) &&
      ftruncate(file->get(), 0) != 0) {
    return base::SystemFailure(kFileTrouble, attempt, path);
  }
  while (!text.empty()) {
    const ssize_t put = write(file->get(), text.data(), text.size());
    if (put > 0) text.remove_prefix(static_cast<std::size_t>(put));
    if (put < 0 && errno != EINTR) return base::SystemFailure(kFileTrouble, attempt, path);
  }
  return absl::OkStatus();
}

}  // namespace muster::launcher
