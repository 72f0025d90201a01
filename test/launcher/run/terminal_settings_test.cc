// "After a rank at a pdb prompt was killed, nothing that I typed was shown."
#include "launcher/run/terminal_settings.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

class TerminalSettingsTest : public testing::Test {
 protected:
  TerminalSettingsTest() {
    master_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master_ < 0 || grantpt(master_) != 0 || unlockpt(master_) != 0) std::abort();
  }
  ~TerminalSettingsTest() override { close(master_); }

  // Whether the terminal echoes when a process has changed it, in a session whose terminal it is,
  // and has restored it; in the background, if it was not in the foreground then.
  bool EchoesAfterwards(bool in_background) const {
    const pid_t child = fork();
    if (child == 0) {
      setsid();
      const int terminal = open(ptsname(master_), O_RDWR);
      ioctl(terminal, TIOCSCTTY, 0);
      const TerminalSettings settings(terminal);
      termios quiet = {};
      tcgetattr(terminal, &quiet);
      quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON);
      tcsetattr(terminal, TCSANOW, &quiet);
      if (in_background) {
        // Else a background process that sets its terminal stops.
        std::signal(SIGTTOU, SIG_IGN);
        const pid_t other = fork();
        if (other == 0) {
          setpgid(0, 0);
          pause();
        }
        setpgid(other, other);
        tcsetpgrp(terminal, other);
        settings.Restore();
        kill(other, SIGKILL);
      } else {
        settings.Restore();
      }
      termios after = {};
      tcgetattr(terminal, &after);
      _exit((after.c_lflag & ECHO) != 0 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    return WEXITSTATUS(status) == 0;
  }

  int master_ = -1;
};

TEST_F(TerminalSettingsTest, WhatAWorkerHasChangedIsPutBack) {
  EXPECT_TRUE(EchoesAfterwards(false));
}

TEST_F(TerminalSettingsTest, TerminalOfAnotherForegroundIsLeftAlone) {
  EXPECT_FALSE(EchoesAfterwards(true));
}

TEST(NoTerminalTest, NothingIsRestored) {
  TerminalSettings(-1).Restore();
}

}  // namespace
}  // namespace muster::launcher
