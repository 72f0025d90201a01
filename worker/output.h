// One output stream of one worker, on its way from the worker to a file, the console and the
// failure report.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "absl/status/statusor.h"
#include "worker/console.h"
#include "worker/line_prefixer.h"
#include "worker/tail_buffer.h"
#include "worker/unique_fd.h"
#include "worker/worker_spec.h"

namespace muster::worker {

// The worker gets the cheapest thing that does what its OutputSpec asks: the console's descriptor,
// the file's descriptor, /dev/null, or else a pipe that the loop copies from. While the console has
// no room the pipe is not read: the worker waits, nothing is lost. Lives on the loop's thread.
class Output {
 public:
  using WarningCallback = std::function<void(const std::string&)>;

  // Opens what `spec` names. `console` must outlive the Output. `owner` ("rank 2") begins each
  // warning. An error says what could not be opened.
  static absl::StatusOr<std::unique_ptr<Output>> Open(boost::asio::io_context& io,
                                                      const OutputSpec& spec, StreamKind kind,
                                                      Console& console, std::string owner,
                                                      WarningCallback on_warning);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // What the worker is to have as this stream.
  int child_fd() const { return child_end_.valid() ? child_end_.get() : console_.fd(kind_); }

  // After the worker was started: gives up our copy of its end and begins to copy.
  void Start();

  // After the worker and its group are gone: takes what is there and ends. Somebody else who still
  // holds the pipe open (a grandchild in a session of its own) is not waited for.
  void Finish();

  // The last bytes of the stream, at most kMaxTail; empty when it went straight to the console.
  // Complete after Finish().
  std::string Tail() const;

  // Bytes that the log file did not take.
  std::uint64_t dropped_bytes() const { return dropped_bytes_; }

 private:
  Output(const OutputSpec& spec, StreamKind kind, Console& console, std::string owner,
         WarningCallback on_warning);
  absl::Status OpenEnds(boost::asio::io_context& io);
  void AwaitReadable();
  void OnReadable();
  enum class ReadResult { kGotSome, kNothingThere, kEnd };
  // Reads at most *limit bytes once, passes them on and takes them off *limit.
  ReadResult ReadOnce(std::size_t* limit);
  void PassOn(std::string_view bytes);
  void WriteToFile(std::string_view bytes);
  void Close();

  const OutputSpec spec_;
  const StreamKind kind_;
  const std::string owner_;
  const WarningCallback on_warning_;
  Console& console_;

  // The worker's end until Start(); invalid when it inherits the console.
  UniqueFd child_end_;
  // Our end of the pipe, if there is one.
  std::optional<boost::asio::posix::stream_descriptor> pipe_;
  // The log file that we write to ourselves.
  UniqueFd file_;
  // Where this worker's part of a log file that it writes to itself begins.
  std::uint64_t file_start_ = 0;

  std::optional<LinePrefixer> prefixer_;
  TailBuffer tail_;
  std::uint64_t dropped_bytes_ = 0;
  // Handlers that find it gone do nothing.
  std::shared_ptr<void> alive_ = std::make_shared<char>();
};

}  // namespace muster::worker
