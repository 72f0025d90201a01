#include "worker/output/pseudo_terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

namespace muster::worker {

namespace {

// Output passes unchanged: the real terminal turns "\n" into "\r\n". No echo, as there is no
// keyboard.
bool WriteAsIs(int worker_end, termios settings) {
  settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  settings.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHONL);
  return ::tcsetattr(worker_end, TCSANOW, &settings) == 0;
}

std::optional<PseudoTerminal> OpenPair() {
  PseudoTerminal terminal;
  terminal.our_end.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  const int ours = terminal.our_end.get();
  if (ours < 0 || ::grantpt(ours) != 0 || ::unlockpt(ours) != 0) return std::nullopt;
  // Opens the peer through our end, not by name: /dev/pts may be another container's.
  terminal.worker_end.reset(::ioctl(ours, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.worker_end.valid()) return std::nullopt;
  return terminal;
}

}  // namespace

std::optional<PseudoTerminal> OpenPseudoTerminal(int console_fd) {
  termios settings;
  if (::tcgetattr(console_fd, &settings) != 0) return std::nullopt;
  std::optional<PseudoTerminal> terminal = OpenPair();
  if (!terminal || !WriteAsIs(terminal->worker_end.get(), settings)) return std::nullopt;
  CopyWindowSize(console_fd, terminal->our_end.get());
  return terminal;
}

std::optional<PseudoTerminal> OpenPseudoTerminal(const WindowSize& size) {
  std::optional<PseudoTerminal> terminal = OpenPair();
  termios settings;
  if (!terminal || ::tcgetattr(terminal->worker_end.get(), &settings) != 0) return std::nullopt;
  if (!WriteAsIs(terminal->worker_end.get(), settings)) return std::nullopt;
  SetWindowSize(terminal->our_end.get(), size);
  return terminal;
}

std::optional<WindowSize> ReadWindowSize(int fd) {
  winsize size;
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0) return std::nullopt;
  return WindowSize{.rows = size.ws_row, .columns = size.ws_col};
}

void SetWindowSize(int fd, const WindowSize& size) {
  winsize wanted = {};
  wanted.ws_row = static_cast<unsigned short>(size.rows);
  wanted.ws_col = static_cast<unsigned short>(size.columns);
  ::ioctl(fd, TIOCSWINSZ, &wanted);
}

void CopyWindowSize(int console_fd, int our_end) {
  winsize size;
  if (::ioctl(console_fd, TIOCGWINSZ, &size) == 0) ::ioctl(our_end, TIOCSWINSZ, &size);
}

int TerminalColumns(int fd) {
  const std::optional<WindowSize> size = ReadWindowSize(fd);
  return size ? size->columns : 0;
}

}  // namespace muster::worker
