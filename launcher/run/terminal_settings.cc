#include "launcher/run/terminal_settings.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <tuple>

namespace muster::launcher {
namespace {

bool IsSame(const termios& a, const termios& b) {
  return std::tie(a.c_iflag, a.c_oflag, a.c_cflag, a.c_lflag) ==
             std::tie(b.c_iflag, b.c_oflag, b.c_cflag, b.c_lflag) &&
         std::equal(std::begin(a.c_cc), std::end(a.c_cc), std::begin(b.c_cc));
}

}  // namespace

TerminalSettings::TerminalSettings(int fd) : fd_(fd) {
  if (getpgrp() != getpid() || tcgetpgrp(fd_) != getpgrp()) return;
  constexpr tcflag_t kUsual = ICANON | ECHO;
  termios now = {};
  if (tcgetattr(fd_, &now) == 0 && (now.c_lflag & kUsual) == kUsual) before_ = now;
}

void TerminalSettings::Restore() const {
  termios now = {};
  if (!before_ || tcgetpgrp(fd_) != getpgrp() || tcgetattr(fd_, &now) != 0) return;
  // What was typed meanwhile is the shell's to read.
  if (!IsSame(now, *before_)) tcsetattr(fd_, TCSADRAIN, &*before_);
}

}  // namespace muster::launcher
