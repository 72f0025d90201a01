// A terminal of a test's own, in which it types and at which it looks: tmux, with a server of its
// own.
#pragma once

#include <string>
#include <vector>

#include "test/support/command.h"
#include "test/support/socket_dir.h"

namespace muster::test {

// A shell with the prompt "ready> " on a terminal of `columns` x `rows`, with this environment
// added (NAME=VALUE). The destructor ends it and all that runs in it.
class Tmux {
 public:
  Tmux(int columns, int rows, const std::vector<std::string>& environment);
  ~Tmux();
  Tmux(const Tmux&) = delete;
  Tmux& operator=(const Tmux&) = delete;

  // A command line, and Enter.
  void Enter(const std::string& line) { Send({"-l", line}), Press("Enter"); }
  // A key as tmux names it: "Enter", "Escape", "Up", "C-c", "q".
  void Press(const std::string& key) { Send({key}); }
  void Resize(int columns, int rows);
  // The terminal is gone.
  void Kill();

  // What is on the screen now, a line for each row, without blanks at their ends.
  std::string Text() const;
  // The same, with the sequences that colour it.
  std::string Coloured() const;
  // Waits until it shows the text, or no longer does.
  [[nodiscard]] bool Shows(const std::string& text) const;
  [[nodiscard]] bool Hides(const std::string& text) const;

 private:
  std::string Ask(std::vector<std::string> command) const;
  void Send(std::vector<std::string> keys);

  const SocketDir dir_;
};

}  // namespace muster::test
