// A terminal for a worker, in place of the one it would have had without us.
#pragma once

#include <optional>

#include "base/unique_fd.h"

namespace muster::worker {

// What is written to `worker_end` can be read from `our_end`, byte for byte. When the last copy of
// the worker's end is closed, reading ours fails with EIO, after everything that was written.
struct PseudoTerminal {
  base::UniqueFd our_end;
  base::UniqueFd worker_end;
};

// In characters; 0 where a terminal does not say.
struct WindowSize {
  int rows = 0;
  int columns = 0;

  bool operator==(const WindowSize&) const = default;
};

// nullopt when `fd` is not a terminal.
std::optional<WindowSize> ReadWindowSize(int fd);
void SetWindowSize(int fd, const WindowSize& size);

// A pseudo-terminal that looks like the terminal `console_fd` (size, settings), but does not change
// what is written: the real one will. It does not become anybody's controlling terminal. Both ends
// are close-on-exec. nullopt when `console_fd` is not a terminal or the system has none available.
std::optional<PseudoTerminal> OpenPseudoTerminal(int console_fd);

// The same for a terminal that is elsewhere, of which no more than its size is known.
std::optional<PseudoTerminal> OpenPseudoTerminal(const WindowSize& size);

// Gives the pseudo-terminal behind `our_end` the size that the terminal has now.
void CopyWindowSize(int console_fd, int our_end);

// How many columns the terminal has; 0 when it does not say, or is not a terminal.
int TerminalColumns(int fd);

}  // namespace muster::worker
