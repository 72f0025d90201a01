#include "base/stdio.h"

#include <fcntl.h>
#include <unistd.h>

namespace muster::base {

void FillStdio() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    // The lowest that is free is taken, and those below are in use by then.
    if (fcntl(fd, F_GETFD) < 0) [[maybe_unused]]
      const int opened = open("/dev/null", O_RDWR);
  }
}

namespace {

// Before objects that are made before main(): gRPC makes an eventfd there, which would be our
// stdin.
[[gnu::constructor(101)]] void FillStdioFirst() {
  FillStdio();
}

}  // namespace
}  // namespace muster::base
