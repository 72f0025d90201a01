// The connection to one host of a launch tree: a child process, such as ssh, with Muster at its
// other end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "absl/status/statusor.h"
#include "base/lifetime.h"
#include "base/unique_fd.h"
#include "launcher/remote/launch_wire.h"
#include "proto/launch.pb.h"
#include "worker/exit_status.h"
#include "worker/output/console.h"
#include "worker/output/lines.h"
#include "worker/process/process.h"

namespace muster::launcher {

// Lives on the loop's thread, which must be the main thread (worker/process/spawn.h). SIGPIPE must
// be ignored. The child leads a session of its own, so that Ctrl-C in the terminal does not reach
// it, and the kernel kills it when this process dies. Nothing in its process group outlives the
// link.
class Link {
 public:
  struct Callbacks {
    // Muster runs at the other end. Must not destroy the link.
    std::function<void()> on_greeting;
    // The host asks for the program (RemoteCommand): first which one to use on a `machine`, as
    // `uname -m` prints it, and then for its bytes. Must not destroy the link.
    std::function<void(const std::string& machine)> on_which;
    std::function<void()> on_send;
    // A message from the other end. Must not destroy the link.
    std::function<void(const launch::v1::Up&)> on_message;
    // The child has exited and its output was delivered, or it sent garbage. `reason` is one line:
    // its last on stderr, or how it exited. The last callback; may destroy the link.
    std::function<void(const std::string& reason)> on_end;
    // Whether more messages can be handled. While it is false, nothing is read and the other end
    // waits, until Resume().
    std::function<bool()> has_room;
  };

  // `name` is the child's name in messages about its exit. An error says why it could not be
  // started.
  static absl::StatusOr<std::unique_ptr<Link>> Start(boost::asio::io_context& io, std::string name,
                                                     std::vector<std::string> argv,
                                                     std::vector<std::string> env,
                                                     Callbacks callbacks);
  // Kills the child if it still runs, and its process group in any case. No callback runs.
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Never blocks: buffers what the other end does not read yet. Not before on_greeting.
  void Send(const launch::v1::Down& message);

  // Answer on_which and on_send. Only one piece of the program is buffered at a time.
  void Answer(const std::string& line);
  void SendProgram(std::shared_ptr<const std::string> compressed);
  // The number of buffered bytes.
  std::size_t pending_size() const { return input_ ? input_->pending_size() : 0; }

  // Closes the child's stdin, which tells the other end to stop.
  void CloseInput();

  // Reads again after has_room() was false.
  void Resume();

 private:
  Link(boost::asio::io_context& io, std::string name, Callbacks callbacks);
  absl::Status Spawn(boost::asio::io_context& io, std::vector<std::string> argv,
                     std::vector<std::string> env);

  // An output stream of the child.
  struct Source {
    explicit Source(boost::asio::io_context& io) : end(io) {}
    boost::asio::posix::stream_descriptor end;
    bool is_open = true;
  };

  void Await(Source& source);
  // Reads and handles one piece.
  void Read(Source& source);
  // Delivers the complete messages; an error is about the stream.
  absl::Status Dispatch();
  // Handles requests for the program before the greeting.
  void HearQuestions();
  void SendPiece(std::size_t begin);
  void MaybeEnd();
  std::string Reason() const;

  const std::string name_;
  const Callbacks callbacks_;

  base::UniqueFd input_fd_;
  std::unique_ptr<worker::ConsoleSink> input_;
  Source output_;
  Source errors_;
  FrameReader reader_{kMaxFrameUp, /*expects_greeting=*/true};
  worker::TailBuffer error_tail_{4096};
  bool is_greeted_ = false;
  bool was_asked_which_ = false;
  bool was_asked_to_send_ = false;
  std::shared_ptr<const std::string> program_;
  // Nothing is read from output_ while has_room() is false.
  bool paused_ = false;
  std::unique_ptr<worker::Process> process_;
  bool has_exited_ = false;
  worker::ExitStatus exit_;
  base::Lifetime lifetime_;
};

}  // namespace muster::launcher
