// Writes to one of our own output streams without ever blocking.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "base/lifetime.h"
#include "base/unique_fd.h"

namespace muster::worker {

// The stream may be a pipe that nobody reads, a terminal stopped by Ctrl-S or a file on a full
// disk, and it is shared with other processes, so O_NONBLOCK must not be set on it. A pipe or
// terminal is therefore opened a second time through /proc/self/fd; a stream that cannot be (a
// socket, another user's terminal) is written to only when the kernel says there is room; a file is
// simply written to.
//
// So the sink is either idle, with nothing pending, or awaiting: something is pending, and the loop
// says when there is room. A plain file is always idle.
//
// What the stream does not take yet is kept, in order. The buffer is bounded by its users: they
// stop reading their own sources while !HasRoom(). An error (EPIPE, ENOSPC) drops what is pending,
// counts it and is reported once; later writes are tried again. Lives on the loop's thread; SIGPIPE
// must be ignored.
class ConsoleSink {
 public:
  static constexpr std::size_t kRoom = 1024 * 1024;

  // `fd` is borrowed and must remain open. `name` ("stdout") begins the sentence given to
  // `on_warning`.
  ConsoleSink(boost::asio::io_context& io, int fd, std::string name,
              std::function<void(const std::string&)> on_warning);
  ConsoleSink(const ConsoleSink&) = delete;
  ConsoleSink& operator=(const ConsoleSink&) = delete;

  // Always takes all of it. Bytes that end in a newline reach a pipe in writes that also end in a
  // newline and that the pipe does not split, provided that lines are at most PIPE_BUF (4096) bytes
  // long.
  void Write(std::string_view bytes);

  // Bytes that the stream has not taken yet.
  std::size_t pending_size() const { return pending_.size() - written_; }

  // Fewer than kRoom bytes are pending.
  bool HasRoom() const { return pending_size() < kRoom; }

  // Runs `callback` once, from the loop, when there is room again. Call only while !HasRoom().
  // Callbacks that outlive what they refer to must notice that themselves.
  void WhenRoom(std::function<void()> callback) { waiting_.push_back(std::move(callback)); }

  // Runs `callback` once, when nothing is pending: now if that is so already, else from the loop.
  // Replaces the callback of an earlier call.
  void WhenWritten(std::function<void()> callback);

  // Blocks until everything is written, at most `limit`: for the end of the program.
  void Flush(std::chrono::milliseconds limit);

  // Writes what fits now, and drops and counts the rest. Returns how many bytes that is.
  std::size_t GiveUp();

  std::uint64_t dropped_bytes() const { return dropped_bytes_; }

 private:
  enum class Kind {
    kPlain,   // a file: always ready
    kOwn,     // reopened: a non-blocking description of our own
    kSocket,  // MSG_DONTWAIT
    kShared,  // anything else: checked for room before each small write
  };

  // How many bytes the stream takes in one piece, with no other writer's in between.
  std::size_t WholePiece() const;
  // How much of `bytes` the next write() is to be given.
  std::size_t NextPiece(std::string_view bytes) const;
  // write(), or EAGAIN where that would have to wait.
  ssize_t TryWrite(const char* data, std::size_t size);
  // Writes until nothing of `bytes` is left or the stream takes no more; returns how many are done
  // with.
  std::size_t WriteWhatFits(std::string_view bytes);
  // The same for what is pending.
  void WriteSome();
  void Drop(std::size_t count, int error);
  void AwaitWritable();
  void OnWritable();

  const std::string name_;
  const std::function<void(const std::string&)> on_warning_;
  Kind kind_ = Kind::kPlain;
  bool is_pipe_ = false;
  // Of a pipe.
  std::size_t capacity_ = 0;

  // What is written to: our own description, or the borrowed one.
  base::UniqueFd own_;
  int fd_;
  // Readable or writable when fd_ is writable; empty for kPlain. For the shared kinds it is an
  // epoll set with fd_ in it, because Asio makes what it watches non-blocking.
  std::optional<boost::asio::posix::stream_descriptor> watch_;

  // Bytes up to written_ are done with.
  std::string pending_;
  std::size_t written_ = 0;
  bool awaiting_ = false;
  std::vector<std::function<void()>> waiting_;
  std::function<void()> on_written_;
  std::uint64_t dropped_bytes_ = 0;
  bool warned_ = false;
  base::Lifetime lifetime_;
};

}  // namespace muster::worker
