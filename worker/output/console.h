// The agent's own stdout and stderr, as the workers' output reaches them.
#pragma once

#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "worker/output/console_sink.h"
#include "worker/output/rewritten_line.h"

namespace muster::worker {

enum class StreamKind { kStdout, kStderr };

// One for the whole program, on the loop's thread; worker groups come and go and borrow it. When
// both streams are the same (2>&1) they share one queue, so that their lines do not mix either.
class Console {
 public:
  // Makes the process ignore SIGPIPE: a closed console must not end the agent, and with it the
  // workers. The descriptors are borrowed. `on_warning` gets one sentence, once for each stream
  // that fails.
  explicit Console(boost::asio::io_context& io,
                   std::function<void(const std::string&)> on_warning = nullptr,
                   int stdout_fd = STDOUT_FILENO, int stderr_fd = STDERR_FILENO);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  ConsoleSink& sink(StreamKind kind) { return stream(kind).sink; }
  // What a worker inherits when it writes to the console itself.
  int fd(StreamKind kind) const { return kind == StreamKind::kStdout ? stdout_fd_ : stderr_fd_; }
  // Whether a line that has no end yet can be shown there, and rewritten.
  bool CanRewrite(StreamKind kind) const;
  // From now on it cannot, although it is a terminal: who reads there puts our lines between those
  // of others.
  void WriteWholeLines() { whole_lines_ = true; }

  // Puts `text` after everything the workers have written so far. Never blocks. `writer` identifies
  // a caller that also calls Rewrite(), by any address of its own; otherwise nullptr.
  void Write(StreamKind kind, std::string_view text, const void* writer = nullptr);

  // Shows `line`, which has no end yet, in place of what `writer` showed last in this way
  // (RewrittenLine). For terminals only. Skipped when the terminal is not keeping up.
  void Rewrite(StreamKind kind, const void* writer, std::string_view line);

  // Keeps the pseudo-terminal behind `our_end` (borrowed) at the size of the console's terminal.
  // While there is one, the loop does not run out of work.
  void AddTerminal(StreamKind kind, int our_end);
  void RemoveTerminal(StreamKind kind, int our_end);

  // Runs `callback` once, when both streams have taken everything: now if that is so already, else
  // from the loop. Replaces the callback of an earlier call.
  void WhenWritten(std::function<void()> callback);

  // Blocks until everything is written, at most `limit` for each stream: for the end of the
  // program.
  void Flush(std::chrono::milliseconds limit);

  // Writes what fits now and drops the rest: for the end of a program that nobody reads. Warns of
  // what stdout has not taken.
  void GiveUp();

 private:
  struct Stream {
    Stream(boost::asio::io_context& io, int fd, std::string name,
           std::function<void(const std::string&)> on_warning);
    ConsoleSink sink;
    const bool is_terminal;
    RewrittenLine bar;
  };

  Stream& stream(StreamKind kind) {
    return kind == StreamKind::kStderr && stderr_ ? *stderr_ : stdout_;
  }
  void AwaitResize();

  const std::function<void(const std::string&)> on_warning_;
  const int stdout_fd_;
  const int stderr_fd_;
  Stream stdout_;
  // Null when stderr is the same as stdout.
  std::unique_ptr<Stream> stderr_;
  bool whole_lines_ = false;
  // Pseudo-terminals of workers, and whose size they have.
  std::set<std::pair<int, StreamKind>> terminals_;
  // SIGWINCH, while there are any.
  boost::asio::signal_set resized_;
};

}  // namespace muster::worker
