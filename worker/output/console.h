// The agent's own stdout and stderr, with the workers' output.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>

#include "base/async/timer.h"
#include "base/lifetime.h"
#include "base/unique_fd.h"
#include "worker/output/lines.h"

namespace muster::worker {

// Writes to one of our own output streams without ever blocking.

// The stream may be a pipe without a reader, a terminal stopped by Ctrl-S or a file on a full disk.
// O_NONBLOCK must not be set on it, as other processes share it. So a pipe or terminal is opened
// again through /proc/self/fd. A stream for which that fails (a socket, another user's terminal) is
// written to only when poll() reports room. A file is simply written to.
//
// The sink is either idle, with nothing pending, or it waits for the loop to report room for the
// pending bytes. A plain file is always idle.
//
// Bytes that the stream does not accept yet are buffered in order. Users bound the buffer: they
// stop reading their own sources while !HasRoom(). An error (EPIPE, ENOSPC) drops the pending
// bytes, counts them and is reported once; later writes try again. Lives on the loop's thread;
// SIGPIPE must be ignored.
class ConsoleSink {
 public:
  static constexpr std::size_t kRoom = 1024 * 1024;

  // `fd` is borrowed and must remain open. `name` ("stdout") starts the sentences for `on_warning`.
  ConsoleSink(boost::asio::io_context& io, int fd, std::string name,
              std::function<void(const std::string&)> on_warning);
  ConsoleSink(const ConsoleSink&) = delete;
  ConsoleSink& operator=(const ConsoleSink&) = delete;

  // Accepts all of it. If `bytes` end in a newline and no line is longer than PIPE_BUF (4096),
  // lines reach a pipe unsplit.
  void Write(std::string_view bytes);

  // Buffered bytes.
  std::size_t pending_size() const { return pending_.size() - written_; }

  // Fewer than kRoom bytes are buffered.
  bool HasRoom() const { return pending_size() < kRoom; }

  // Runs `callback` once, from the loop, when there is room again. Call only while !HasRoom(). A
  // callback must check for itself that what it refers to still exists.
  void WhenRoom(std::function<void()> callback) { waiting_.push_back(std::move(callback)); }

  // Runs `callback` once, when nothing is pending: now, or from the loop. Replaces the callback of
  // an earlier call.
  void WhenWritten(std::function<void()> callback);

  // Blocks until everything is written, at most `limit`; for the end of the program.
  void Flush(std::chrono::milliseconds limit);

  // Writes what fits now, drops and counts the rest, and returns how many bytes were dropped.
  std::size_t GiveUp();

  std::uint64_t dropped_bytes() const { return dropped_bytes_; }

 private:
  enum class Kind {
    kPlain,   // a file: always ready
    kOwn,     // reopened: a nonblocking description of our own
    kSocket,  // MSG_DONTWAIT
    kShared,  // anything else: polled before each small write
  };

  // How many bytes the stream accepts atomically.
  std::size_t WholePiece() const;
  // The size of the next write() for `bytes`.
  std::size_t NextPiece(std::string_view bytes) const;
  // write(), or EAGAIN if that would block.
  ssize_t TryWrite(const char* data, std::size_t size);
  // Writes until `bytes` are done or the stream is full; returns how many bytes are done.
  std::size_t WriteWhatFits(std::string_view bytes);
  // The same for the pending bytes.
  void WriteSome();
  void Drop(std::size_t count, int error);
  void AwaitWritable();
  void OnWritable();

  const std::string name_;
  const std::function<void(const std::string&)> on_warning_;
  Kind kind_ = Kind::kPlain;
  bool is_pipe_ = false;
  // For a pipe.
  std::size_t capacity_ = 0;

  // The target: our own description, or the borrowed one.
  base::UniqueFd own_;
  int fd_;
  // Becomes ready when fd_ is writable; empty for kPlain. For shared kinds it is an epoll set that
  // contains fd_, as Asio makes watched descriptors nonblocking.
  std::optional<boost::asio::posix::stream_descriptor> watch_;

  // Bytes up to written_ are written.
  std::string pending_;
  std::size_t written_ = 0;
  bool awaiting_ = false;
  std::vector<std::function<void()>> waiting_;
  std::function<void()> on_written_;
  std::uint64_t dropped_bytes_ = 0;
  bool warned_ = false;
  base::Lifetime lifetime_;
};

enum class StreamKind { kStdout, kStderr };

// One for the whole program, on the loop's thread; worker groups borrow it. If both streams are the
// same (2>&1) they share one queue, so that their lines do not mix either.
class Console {
 public:
  // Makes the process ignore SIGPIPE: a closed console must not kill the agent, and with it the
  // workers. The descriptors are borrowed. `on_warning` gets one sentence per stream that fails.
  explicit Console(boost::asio::io_context& io,
                   std::function<void(const std::string&)> on_warning = nullptr,
                   int stdout_fd = STDOUT_FILENO, int stderr_fd = STDERR_FILENO);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  ConsoleSink& sink(StreamKind kind) { return stream(kind).sink; }
  // What a worker inherits if it writes to the console itself.
  int fd(StreamKind kind) const { return kind == StreamKind::kStdout ? stdout_fd_ : stderr_fd_; }
  // Whether an incomplete line can be shown there and rewritten.
  bool CanRewrite(StreamKind kind) const;
  // Disables that, even on a terminal: another process there puts our lines between others.
  void WriteWholeLines() { whole_lines_ = true; }

  // Writes `text` after everything written so far. Never blocks. `writer` is any address that
  // identifies a caller of Rewrite() or ShowPart(); otherwise nullptr.
  void Write(StreamKind kind, std::string_view text, const void* writer = nullptr);

  // Shows `line`, which is incomplete, in place of `writer`'s last one (RewrittenLine). For
  // terminals only. Skipped while the terminal does not keep up.
  void Rewrite(StreamKind kind, const void* writer, std::string_view line);

  // Shows `line`, which `writer` has not completed: continues the part already shown, unless
  // another writer has written since. Later calls of Write() and ShowPart() must pass the whole
  // line again.
  void ShowPart(StreamKind kind, const void* writer, std::string_view line);

  // Keeps the pseudo-terminal behind `our_end` (borrowed) at the size of the console's terminal.
  // Keeps the loop running.
  void AddTerminal(StreamKind kind, int our_end);
  void RemoveTerminal(StreamKind kind, int our_end);

  // Runs `callback` once, when both streams have accepted everything: now, or from the loop.
  // Replaces the callback of an earlier call.
  void WhenWritten(std::function<void()> callback);

  // Blocks until everything is written, at most `limit` per stream; for the end of the program.
  void Flush(std::chrono::milliseconds limit);

  // Writes what fits now and drops the rest; for the end of a program whose output is not read.
  // Warns of bytes lost on stdout.
  void GiveUp();

 private:
  struct Stream {
    Stream(boost::asio::io_context& io, int fd, std::string name,
           std::function<void(const std::string&)> on_warning);
    ConsoleSink sink;
    const bool is_terminal;
    RewrittenLine last_line;
  };

  Stream& stream(StreamKind kind) {
    return kind == StreamKind::kStderr && stderr_ ? *stderr_ : stdout_;
  }
  void AwaitResize();

  const std::function<void(const std::string&)> on_warning_;
  const int stdout_fd_;
  const int stderr_fd_;
  Stream stdout_;
  // Null if stderr is the same as stdout.
  std::unique_ptr<Stream> stderr_;
  bool whole_lines_ = false;
  // Workers' pseudo-terminals, and the stream whose size they follow.
  std::set<std::pair<int, StreamKind>> terminals_;
  // SIGWINCH, while there are any.
  boost::asio::signal_set resized_;
};

// Shows an incomplete line whose rest does not come: a prompt has no newline.

// One per stream whose incomplete lines are held back. Complete lines, or silence, cost no wake-up
// beyond the first. Lives on the loop's thread.
class PartialLineTimer {
 public:
  // How long an incomplete line is held back.
  static constexpr std::chrono::milliseconds kPatience{200};

  // `show` is called from the loop when a part has been held back for that long. If it returns
  // false, as more can be read, it is called again after that was read.
  PartialLineTimer(boost::asio::io_context& io, std::function<bool()> show)
      : timer_(io), show_(std::move(show)) {}

  // Bytes have arrived. `ended`: they contain the end of a line. `holds_back`: they end with an
  // incomplete line.
  void OnBytes(bool ended, bool holds_back);

 private:
  void Arm();

  base::Timer timer_;
  const std::function<bool()> show_;
  // When the held back part arrived, unless `show` was called for it.
  std::optional<std::chrono::steady_clock::time_point> since_;
};

}  // namespace muster::worker
