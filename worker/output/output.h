// One output stream of one worker, on its way to a file, the console and the failure report.
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

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "base/lifetime.h"
#include "base/unique_fd.h"
#include "worker/output/console.h"
#include "worker/output/lines.h"
#include "worker/output/stream_log.h"
#include "worker/worker_spec.h"

namespace muster::worker {

// The worker gets the cheapest descriptor that its OutputSpec allows: the console's, /dev/null, or
// a pipe that the loop copies from. If only the tail is wanted and it would have had a terminal, it
// gets a pseudo-terminal instead of a pipe. While the console has no room, the stream is not read:
// the worker waits, and nothing is lost.
//
// With a prefix, an incomplete line is shown if its end does not come: it may be a prompt. If the
// console does not show the stream, a debugger's prompt is reported instead. A stream without any
// target is read for that alone if the worker can read from a terminal.
//
// The worker never gets a file's descriptor: on a full disk its own write() would fail, and end a
// training that only wanted to print. Copying costs the agent one read() and one write() per 64
// KiB, or per piece that has arrived. Lives on the loop's thread.
class Output {
 public:
  using WarningCallback = std::function<void(const std::string&)>;

  // Opens what `spec` names. `console` must outlive the Output. `on_log_loss` is called once per
  // log file that rejects data, with the text of LogWriter::Write. `on_prompt` is called once, with
  // a debugger's prompt that the console does not show. An error says what could not be opened.
  static absl::StatusOr<std::unique_ptr<Output>> Open(boost::asio::io_context& io,
                                                      const OutputSpec& spec, StreamKind kind,
                                                      Console& console, WarningCallback on_log_loss,
                                                      WarningCallback on_prompt = nullptr);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // The worker's descriptor for this stream.
  int child_fd() const { return child_end_.valid() ? child_end_.get() : console_.fd(kind_); }

  // Call once the worker runs as `pid`: closes our copy of its end and starts copying.
  void Start(pid_t pid);

  // Reads what is there now: after the worker's exit its last output is wanted, although its
  // children may still write.
  void Drain();

  // Reads what is there and closes, even if another process holds the other end open.
  void Finish();

  // The same, but processes that hold the other end open can keep writing after this program has
  // exited: to the log file if there is one, else to the console or /dev/null.
  absl::Status FinishForKept();

  // The stream's last bytes, at most kMaxTail; empty if it goes straight to the console. Complete
  // after Drain().
  std::string Tail() const { return tail_.Text(); }

  // When the last bytes were read; nullopt if there were none or they go straight to the console.
  std::optional<std::chrono::steady_clock::time_point> last_output() const { return last_output_; }

  // Bytes that log files rejected.
  std::uint64_t dropped_bytes() const;

 private:
  Output(boost::asio::io_context& io, const OutputSpec& spec, StreamKind kind, Console& console,
         WarningCallback on_log_loss, WarningCallback on_prompt);
  absl::Status OpenFiles();
  absl::Status OpenEnds(boost::asio::io_context& io);
  void AwaitReadable();
  void OnReadable();
  enum class ReadResult { kGotSome, kNothingThere, kEnd };
  // Reads once, at most *limit bytes, passes them on and subtracts them from *limit.
  ReadResult ReadOnce(std::size_t* limit);
  void PassOn(std::string_view bytes);
  // The end of the last line does not come. False if the worker has written more.
  bool OnPartialLine();
  void Log(std::optional<LogWriter>& file, std::string_view bytes);
  void Close();

  const OutputSpec spec_;
  const StreamKind kind_;
  const WarningCallback on_log_loss_;
  WarningCallback on_prompt_;  // null once called
  Console& console_;

  // The worker's end until Start(); invalid if it inherits the console.
  base::UniqueFd child_end_;
  // Our end of a pipe or pseudo-terminal, if there is one.
  std::optional<boost::asio::posix::stream_descriptor> our_end_;
  bool is_terminal_ = false;

  std::optional<LogWriter> file_;
  std::optional<LogWriter> filtered_file_;
  // Created in Start(), as they may need the pid.
  std::optional<LinePrefixer> prefixer_;
  std::optional<LinePrefixer> filter_;
  PartialLineTimer partial_line_;
  TailBuffer tail_;
  std::optional<std::chrono::steady_clock::time_point> last_output_;
  base::Lifetime lifetime_;
};

// Keeps output of leftover processes flowing after this program has exited: without a reader they
// would die of SIGPIPE, and with a full pipe they would block.

// Starts a process that copies from `from`, a pipe or pseudo-terminal, to `to`, until no writer is
// left. It outlives this program and its terminal; if `to` fails, it discards the rest. Both
// descriptors remain the caller's. Internal if no process can be started.
absl::Status CopyApart(int from, int to);

}  // namespace muster::worker
