#include "base/kernel.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/failure.h"
#include "base/unique_fd.h"

namespace muster::base {
namespace {

// <linux/wait.h>; glibc has it since 2.36.
constexpr int kPidfd = 3;

absl::Status Missing(const char* call, int error) {
  return absl::FailedPreconditionError(absl::StrCat(
      "watch processes: ", call, ": ", SystemCause(error),
      "; Muster needs Linux 5.4 or newer, and a container that lets this call through"));
}

}  // namespace

absl::Status CheckKernel() {
  const UniqueFd self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (self.get() < 0) {
    // Too many open files is another trouble, which others report.
    const int error = errno;
    return error == ENOSYS || error == EPERM ? Missing("pidfd_open", error) : absl::OkStatus();
  }
  siginfo_t info{};
  // This process is not its own child, which a kernel that knows such descriptors says.
  if (::waitid(static_cast<idtype_t>(kPidfd), static_cast<id_t>(self.get()), &info,
               WEXITED | WNOHANG) != 0 &&
      errno != ECHILD) {
    return Missing("waitid(P_PIDFD)", errno);
  }
  return absl::OkStatus();
}

}  // namespace muster::base
