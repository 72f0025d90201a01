#include "launcher/agent/inherited_fd.h"

#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/numbers.h"

namespace muster::launcher {

std::optional<int> TakeInheritedFd(Environment& environment, const std::string& name) {
  const auto variable = environment.extract(name);
  int fd = -1;
  if (!variable || !absl::SimpleAtoi(variable.mapped(), &fd) || fd <= STDERR_FILENO ||
      ::fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
    return std::nullopt;
  }
  return fd;
}

}  // namespace muster::launcher
