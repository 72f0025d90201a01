// The agent's own stdout and stderr, as the workers' output reaches them.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include "worker/console_sink.h"

namespace muster::worker {

enum class StreamKind { kStdout, kStderr };

// One for the whole program, on the loop's thread; worker groups come and go and borrow it. When
// both streams are one and the same (2>&1) they share one queue, so that their lines do not mix
// either.
class Console {
 public:
  // Makes the process ignore SIGPIPE: a closed console must not end the agent, and with it the
  // workers. The descriptors are borrowed. `on_warning` gets one sentence, once for each stream
  // that fails.
  explicit Console(boost::asio::io_context& io,
                   std::function<void(const std::string&)> on_warning = nullptr,
                   int stdout_fd = STDOUT_FILENO, int stderr_fd = STDERR_FILENO);

  ConsoleSink& sink(StreamKind kind) {
    return kind == StreamKind::kStderr && stderr_sink_ ? *stderr_sink_ : stdout_sink_;
  }
  // What a worker inherits when it writes to the console itself.
  int fd(StreamKind kind) const { return kind == StreamKind::kStdout ? stdout_fd_ : stderr_fd_; }

  // Puts `text` after everything the workers have written so far. Never blocks.
  void Write(StreamKind kind, std::string_view text) { sink(kind).Write(text); }

  // Blocks until all is written, at most `limit` for each stream: for the end of the program.
  void Flush(std::chrono::milliseconds limit);

 private:
  const int stdout_fd_;
  const int stderr_fd_;
  ConsoleSink stdout_sink_;
  // Null when stderr is the same as stdout.
  std::unique_ptr<ConsoleSink> stderr_sink_;
};

}  // namespace muster::worker
