#include "base/program.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace muster::base {
namespace {

bool IsNull(int fd) {
  struct stat is {
  }, null{};
  return fstat(fd, &is) == 0 && stat("/dev/null", &null) == 0 && is.st_rdev == null.st_rdev;
}

// "muster kv set k <&-" read its own eventfd: "read stdin: Resource temporarily unavailable".
TEST(StdioTest, WhatIsClosedBecomesNull) {
  const pid_t child = fork();
  if (child == 0) {
    const int kept = fcntl(STDOUT_FILENO, F_DUPFD, 10);
    close(STDIN_FILENO);
    close(STDERR_FILENO);
    FillStdio();
    struct stat before {
    }, after{};
    const bool same = fstat(kept, &before) == 0 && fstat(STDOUT_FILENO, &after) == 0 &&
                      before.st_ino == after.st_ino;
    _exit(IsNull(STDIN_FILENO) && IsNull(STDERR_FILENO) && same ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace muster::base
