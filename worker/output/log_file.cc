#include "worker/output/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/failure.h"
#include "base/safe_path.h"

namespace muster::worker {
namespace {

absl::Status OpenError(const std::string& path, const std::string& cause) {
  return base::Failure(absl::StatusCode::kFailedPrecondition, "open log file", path, cause);
}

}  // namespace

absl::StatusOr<base::UniqueFd> OpenLogFile(const std::string& path) {
  // Without O_NONBLOCK, opening a FIFO would wait for its reader.
  absl::StatusOr<base::UniqueFd> file =
      base::OpenFile(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600,
                     {.make = 0700});
  if (!file.ok()) return OpenError(path, std::string(file.status().message()));
  struct stat info;
  if (::fstat(file->get(), &info) != 0) return OpenError(path, base::SystemCause());
  if (!S_ISREG(info.st_mode) && !S_ISCHR(info.st_mode)) {
    return OpenError(path, "it is not a regular file");
  }
  if (S_ISREG(info.st_mode) && info.st_nlink > 1) {
    return OpenError(path, "it has a second name (a hard link); remove it, or name another place");
  }
  // Where writes would have to wait, they are to.
  ::fcntl(file->get(), F_SETFL, O_APPEND);
  return file;
}

absl::StatusOr<LogWriter> LogWriter::Open(const std::string& path) {
  absl::StatusOr<base::UniqueFd> file = OpenLogFile(path);
  if (!file.ok()) return file.status();
  return LogWriter(path, *std::move(file));
}

std::string LogWriter::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (errno == EINTR) continue;
    const bool first = dropped_bytes_ == 0;
    dropped_bytes_ += bytes.size();
    return first ? absl::StrCat("write ", path_, ": ", base::SystemCause()) : "";
  }
  return "";
}

}  // namespace muster::worker
