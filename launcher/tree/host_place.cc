#include "launcher/tree/host_place.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/failure.h"
#include "base/safe_path.h"

namespace muster::launcher {

absl::StatusOr<std::unique_ptr<HostPlace>> HostPlace::Take(const std::vector<std::string>& dirs,
                                                           const std::string& job, int host) {
  if (job.empty() || job.find('/') != std::string::npos) {
    return absl::InvalidArgumentError("what the parent says makes no sense");
  }
  const std::string name = absl::StrCat("host-", job, ".", host, ".lock");
  absl::Status first_failure;
  for (const std::string& dir : dirs) {
    auto directory = base::OpenDirectory(dir, {.ours_alone = true, .make = 0700});
    first_failure.Update(directory.status());
    if (!directory.ok()) continue;
    for (;;) {
      base::UniqueFd file(::openat(directory->get(), name.c_str(),
                                   O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
      if (file.get() < 0) {
        return base::SystemFailure(absl::StatusCode::kInternal, "take the host's place in the job");
      }
      if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR) continue;
        return absl::UnavailableError("what was started there before is still ending");
      }
      // Whoever had it may have removed it after it was opened here.
      struct stat now = {};
      if (::fstat(file.get(), &now) == 0 && now.st_nlink == 0) continue;
      return std::unique_ptr<HostPlace>(
          new HostPlace(*std::move(directory), name, std::move(file)));
    }
  }
  return first_failure.ok() ? absl::InternalError("no directory is named") : first_failure;
}

HostPlace::HostPlace(base::UniqueFd directory, std::string name, base::UniqueFd file)
    : directory_(std::move(directory)), name_(std::move(name)), file_(std::move(file)) {}

HostPlace::~HostPlace() {
  ::unlinkat(directory_.get(), name_.c_str(), 0);
}

}  // namespace muster::launcher
