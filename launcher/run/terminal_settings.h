// The settings of a terminal that a run has borrowed.
#pragma once

#include <termios.h>

#include <optional>

namespace muster::launcher {

// Remembers how a terminal is set, for a run whose workers may change that: a prompt of pdb turns
// the echo off while it is read, and a worker that is killed there cannot turn it on again.
class TerminalSettings {
 public:
  // Of the terminal `fd`, if this process leads the group in its foreground, and lines are edited
  // and echoed there: otherwise a pager, a prompt for a password or the shell has it, or may get it
  // meanwhile. Of anything else there is nothing to remember.
  explicit TerminalSettings(int fd);

  // Sets the terminal as it was. Does nothing when it is, or when it has another foreground by now.
  void Restore() const;

 private:
  const int fd_;
  std::optional<termios> before_;
};

}  // namespace muster::launcher
