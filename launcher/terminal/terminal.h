// The terminal that this process has, taken as a whole: ncurses, behind values.
#pragma once

#include <functional>
#include <memory>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>

#include "absl/status/statusor.h"
#include "launcher/terminal/key.h"
#include "launcher/terminal/screen.h"

namespace muster::launcher {

// On the loop: a key is read when it is there, and nothing waits for one. At most one exists. While
// it does, nothing else may be written to the terminal. Its destructor gives the terminal back as
// it was; so does SIGTSTP (Ctrl-Z), until the process is continued. Signals that end the process
// are whoever opens it to handle, from before that on: ncurses has handlers for those that nobody
// does.
class Terminal {
 public:
  // From the loop; must not destroy the terminal.
  struct Listener {
    std::function<void(const Key&)> on_key;
    // It is to be drawn anew: its size has changed, or the process has been continued.
    std::function<void()> on_change;
    // There is no terminal any more: nothing can be read from it.
    std::function<void()> on_gone;
  };

  // FailedPrecondition, one sentence: stdin or stdout is no terminal, or one of whose kind (TERM)
  // terminfo knows nothing, or not enough. `io` must outlive it. Colours are used where the
  // terminal has them and NO_COLOR is not set.
  static absl::StatusOr<std::unique_ptr<Terminal>> Open(boost::asio::io_context& io,
                                                        Listener listener);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  ScreenSize size() const;
  void Draw(const Screen& screen);

 private:
  Terminal(boost::asio::io_context& io, Listener listener);

  void AwaitInput();
  void ReadKeys();
  void AwaitSignal();
  void Resize();
  void Suspend();

  const Listener listener_;
  boost::asio::posix::stream_descriptor input_;
  boost::asio::signal_set signals_;
  bool has_colours_ = false;
};

}  // namespace muster::launcher
