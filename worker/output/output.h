// One output stream of one worker, on its way from the worker to a file, the console and the
// failure report.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "absl/status/statusor.h"
#include "base/lifetime.h"
#include "base/unique_fd.h"
#include "worker/output/console.h"
#include "worker/output/line_prefixer.h"
#include "worker/output/log_file.h"
#include "worker/output/tail_buffer.h"
#include "worker/worker_spec.h"

namespace muster::worker {

// The worker gets the cheapest thing that does what its OutputSpec asks: the console's descriptor,
// /dev/null, or else a pipe that the loop copies from; where it would have had a terminal and only
// its tail is wanted, a pseudo-terminal in place of the pipe. While the console has no room we do
// not read: the worker waits, nothing is lost.
//
// A file is never the worker's own descriptor: when the disk is full, write() would fail in the
// worker and end a training that only wanted to print. Copying costs the agent one read() and one
// write() for every 64 KiB, or for whatever has arrived by the time it gets to it. Lives on the
// loop's thread.
class Output {
 public:
  using WarningCallback = std::function<void(const std::string&)>;

  // Opens what `spec` names. `console` must outlive the Output. `on_log_loss` is called when a log
  // file accepts no more, once for each file, with the text from LogWriter::Write. An error says
  // what could not be opened.
  static absl::StatusOr<std::unique_ptr<Output>> Open(boost::asio::io_context& io,
                                                      const OutputSpec& spec, StreamKind kind,
                                                      Console& console,
                                                      WarningCallback on_log_loss);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // The descriptor that the worker is to have as this stream.
  int child_fd() const { return child_end_.valid() ? child_end_.get() : console_.fd(kind_); }

  // To be called once the worker is started as `pid`: closes our copy of its end and begins to
  // copy.
  void Start(pid_t pid);

  // Takes what is there now: for the end of the worker, whose last words are wanted while what it
  // has started may still write.
  void Drain();

  // Takes what is there and ends, even if somebody holds the other end open.
  void Finish();

  // The last bytes of the stream, at most kMaxTail; empty when it went straight to the console.
  // Complete after Drain().
  std::string Tail() const { return tail_.Text(); }

  // When the worker's last bytes were read; nullopt when there were none, or when they go straight
  // to the console.
  std::optional<std::chrono::steady_clock::time_point> last_output() const { return last_output_; }

  // Bytes that a log file did not take.
  std::uint64_t dropped_bytes() const;

 private:
  Output(const OutputSpec& spec, StreamKind kind, Console& console, WarningCallback on_log_loss);
  absl::Status OpenFiles();
  absl::Status OpenEnds(boost::asio::io_context& io);
  void AwaitReadable();
  void OnReadable();
  enum class ReadResult { kGotSome, kNothingThere, kEnd };
  // Reads once, at most *limit bytes, passes them on and subtracts them from *limit.
  ReadResult ReadOnce(std::size_t* limit);
  void PassOn(std::string_view bytes);
  void Log(std::optional<LogWriter>& file, std::string_view bytes);
  void Close();

  const OutputSpec spec_;
  const StreamKind kind_;
  const WarningCallback on_log_loss_;
  Console& console_;

  // The worker's end until Start(); invalid when it inherits the console.
  base::UniqueFd child_end_;
  // Our end, if there is one: of a pipe, or of a pseudo-terminal.
  std::optional<boost::asio::posix::stream_descriptor> our_end_;
  bool is_terminal_ = false;

  std::optional<LogWriter> file_;
  std::optional<LogWriter> filtered_file_;
  // Created in Start(), as they may show the pid.
  std::optional<LinePrefixer> prefixer_;
  std::optional<LinePrefixer> filter_;
  TailBuffer tail_;
  std::optional<std::chrono::steady_clock::time_point> last_output_;
  base::Lifetime lifetime_;
};

}  // namespace muster::worker
