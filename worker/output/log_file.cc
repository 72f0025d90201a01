#include "worker/output/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/failure.h"

namespace muster::worker {
namespace {

// Like mkdir -p of everything above the last slash. What goes wrong shows when the file is opened.
void MakeParents(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    ::mkdir(path.substr(0, slash).c_str(), 0700);
  }
}

absl::Status OpenError(const std::string& path, const std::string& cause) {
  return base::Failure(absl::StatusCode::kFailedPrecondition, "open log file", path, cause);
}

}  // namespace

absl::StatusOr<base::UniqueFd> OpenLogFile(const std::string& path) {
  // Without O_NONBLOCK, opening a FIFO would wait for its reader.
  constexpr int kFlags =
      O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  base::UniqueFd file(::open(path.c_str(), kFlags, 0600));
  if (!file.valid() && errno == ENOENT) {
    MakeParents(path);
    file.reset(::open(path.c_str(), kFlags, 0600));
  }
  if (!file.valid()) {
    return OpenError(path, base::OpenCause());
  }
  struct stat info;
  if (::fstat(file.get(), &info) != 0) return OpenError(path, base::SystemCause());
  if (!S_ISREG(info.st_mode) && !S_ISCHR(info.st_mode)) {
    return OpenError(path, "it is not a regular file");
  }
  // Where writes would have to wait, they are to.
  ::fcntl(file.get(), F_SETFL, O_APPEND);
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
