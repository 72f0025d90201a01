#include "test/support/tmux.h"

#include <utility>

#include "test/support/wait_until.h"

namespace muster::test {

Tmux::Tmux(int columns, int rows, const std::vector<std::string>& environment) {
  std::vector<std::string> start = {"new-session",           "-d", "-x",
                                    std::to_string(columns), "-y", std::to_string(rows)};
  for (const std::string& variable : environment) {
    start.push_back("-e");
    start.push_back(variable);
  }
  start.push_back("sh");
  Ask(start);
  // All of the terminal is the shell's, and keys go to it at once.
  Ask({"set", "-g", "status", "off"});
  Ask({"set", "-s", "escape-time", "0"});
  // Root's shell would have another prompt.
  Enter("PS1='ready> '; clear");
}

Tmux::~Tmux() {
  Kill();
}

void Tmux::Kill() {
  Ask({"kill-server"});
}

void Tmux::Resize(int columns, int rows) {
  Ask({"resize-window", "-x", std::to_string(columns), "-y", std::to_string(rows)});
}

std::string Tmux::Text() const {
  return Ask({"capture-pane", "-p"});
}

std::string Tmux::Coloured() const {
  return Ask({"capture-pane", "-p", "-e"});
}

bool Tmux::Shows(const std::string& text) const {
  return WaitUntil([&] { return Text().find(text) != std::string::npos; });
}

bool Tmux::Hides(const std::string& text) const {
  return WaitUntil([&] { return Text().find(text) == std::string::npos; });
}

std::string Tmux::Ask(std::vector<std::string> command) const {
  command.insert(command.begin(), {"tmux", "-S", dir_.Path("tmux"), "-f", "/dev/null"});
  Command tmux(std::move(command));
  tmux.Wait();
  return tmux.out() + tmux.err();
}

void Tmux::Send(std::vector<std::string> keys) {
  keys.insert(keys.begin(), "send-keys");
  Ask(std::move(keys));
}

}  // namespace muster::test
