// The last line of a terminal, when it is a progress bar that is rewritten in place.
//
// Several writers share the terminal. As long as one of them rewrites its line and no other writes
// anything, the bar remains one line. When another has something to show, the bar as it looks then
// becomes a line of its own and stays; its writer continues below. So two bars that move by turns
// become lines, as they would on a console that is not a terminal, and are never mixed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::worker {

// Composes what is written to the terminal, and remembers whether there is a bar now. Uses only
// '\r' and spaces, so that any terminal will do. Writers are told apart by an address of their
// choice; nullptr stands for one that never rewrites.
class RewrittenLine {
 public:
  // What to write to show `line` in place of the bar, or as a new one. The line is cut to fit into
  // a row of `columns` (0: unknown), as text that has wrapped cannot be taken back.
  std::string Rewrite(const void* writer, std::string_view line, int columns);

  // What to write before the lines, or bytes, that `writer` writes next: it takes the writer's own
  // bar off the terminal, and leaves another's behind as a line.
  std::string Leave(const void* writer);

 private:
  // Whose bar is shown; nullptr: none.
  const void* writer_ = nullptr;
  // How many columns it takes.
  std::size_t width_ = 0;
};

// How many columns `text` takes: characters of UTF-8, escape sequences not counted.
std::size_t VisibleWidth(std::string_view text);

// As much of `text` as fits into `columns`, with all of its escape sequences.
std::string CutToWidth(std::string_view text, std::size_t columns);

}  // namespace muster::worker
