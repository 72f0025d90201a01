#include "launcher/agent/speech.h"

#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/numbers.h"

namespace muster::launcher {

std::optional<int> TakeSpeechFd(Environment& environment) {
  const auto variable = environment.extract(kSpeechVariable);
  int fd = -1;
  if (!variable || !absl::SimpleAtoi(variable.mapped(), &fd) || fd <= STDERR_FILENO ||
      ::fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
    return std::nullopt;
  }
  return fd;
}

}  // namespace muster::launcher
