// This process's terminal through ncurses, in terms of values.
#pragma once

#include <functional>
#include <memory>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>

#include "absl/status/statusor.h"
#include "launcher/top/screen.h"

namespace muster::launcher {

// On the loop; reads keys without blocking. At most one exists, and meanwhile nothing else may
// write to the terminal. The destructor restores the terminal; so does SIGTSTP (Ctrl-Z) until the
// process is continued. The owner must handle signals that end the process, and must set that up
// first: ncurses installs handlers for those that have none.
class Terminal {
 public:
  // Called from the loop; must not destroy the terminal.
  struct Listener {
    std::function<void(const Key&)> on_key;
    // Draw again: the size has changed, or the process was continued.
    std::function<void()> on_change;
    // The terminal is gone: nothing more can be read.
    std::function<void()> on_gone;
  };

  // FailedPrecondition, one sentence: stdin or stdout is not a terminal, or terminfo does not know
  // enough about its TERM. `io` must outlive it. Uses colours if the terminal has them and NO_COLOR
  // is not set.
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
