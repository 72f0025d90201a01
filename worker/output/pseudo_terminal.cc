#include "worker/output/pseudo_terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

namespace muster::worker {

std::optional<PseudoTerminal> OpenPseudoTerminal(int console_fd) {
  termios settings;
  if (::tcgetattr(console_fd, &settings) != 0) return std::nullopt;
  PseudoTerminal terminal;
  terminal.our_end.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  const int ours = terminal.our_end.get();
  if (ours < 0 || ::grantpt(ours) != 0 || ::unlockpt(ours) != 0) return std::nullopt;
  // By way of our end, not by its name: /dev/pts here may be another container's.
  terminal.worker_end.reset(::ioctl(ours, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.worker_end.valid()) return std::nullopt;
  // "\n" becomes "\r\n" once, at the real terminal. Nothing is ever typed on this one.
  settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  settings.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHONL);
  if (::tcsetattr(terminal.worker_end.get(), TCSANOW, &settings) != 0) return std::nullopt;
  CopyWindowSize(console_fd, ours);
  return terminal;
}

void CopyWindowSize(int console_fd, int our_end) {
  winsize size;
  if (::ioctl(console_fd, TIOCGWINSZ, &size) == 0) ::ioctl(our_end, TIOCSWINSZ, &size);
}

int TerminalColumns(int fd) {
  winsize size;
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace muster::worker
