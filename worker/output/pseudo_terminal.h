// A pseudo-terminal for a worker that would otherwise have had a terminal.
#pragma once

#include <optional>

#include "base/unique_fd.h"

namespace muster::worker {

// Bytes written to `worker_end` can be read from `our_end` unchanged. Once the last copy of the
// worker's end is closed and everything is read, reading ours fails with EIO.
struct PseudoTerminal {
  base::UniqueFd our_end;
  base::UniqueFd worker_end;
};

// In characters; 0 if the terminal does not say.
struct WindowSize {
  int rows = 0;
  int columns = 0;

  bool operator==(const WindowSize&) const = default;
};

// nullopt if `fd` is not a terminal.
std::optional<WindowSize> ReadWindowSize(int fd);
void SetWindowSize(int fd, const WindowSize& size);

// A pseudo-terminal with the size and settings of the terminal `console_fd` that does not change
// the output, as the real one will. Never a controlling terminal. Both ends are close-on-exec.
// nullopt if `console_fd` is not a terminal or the system has none left.
std::optional<PseudoTerminal> OpenPseudoTerminal(int console_fd);

// The same for a terminal on another machine, of which only the size is known.
std::optional<PseudoTerminal> OpenPseudoTerminal(const WindowSize& size);

// Gives the pseudo-terminal behind `our_end` the terminal's current size.
void CopyWindowSize(int console_fd, int our_end);

// The terminal's width; 0 if it does not say, or is not a terminal.
int TerminalColumns(int fd);

}  // namespace muster::worker
