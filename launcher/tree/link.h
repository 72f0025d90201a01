// A connection to one host of a launch tree: a child process, such as ssh, with Muster at its other
// end.
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
#include "launcher/tree/frame.h"
#include "proto/launch.pb.h"
#include "worker/exit_status.h"
#include "worker/output/console_sink.h"
#include "worker/output/tail_buffer.h"
#include "worker/process/process.h"

namespace muster::launcher {

// Lives on the loop's thread, which must be the main thread (worker/process/spawn.h). SIGPIPE must
// be ignored. The child leads a session of its own, so that a Ctrl-C in the terminal does not reach
// it, and is killed when this process ends, however it ends. Of its process group nothing outlives
// the link.
class Link {
 public:
  struct Callbacks {
    // Muster runs at the other end. Must not destroy the link.
    std::function<void()> on_greeting;
    // It has to be sent there first (RemoteCommand): which one is asked for a machine of this kind,
    // as `uname -m` says, and then for its bytes. Must not destroy the link.
    std::function<void(const std::string& machine)> on_which;
    std::function<void()> on_send;
    // A message from the other end. Must not destroy the link.
    std::function<void(const launch::v1::Up&)> on_message;
    // The child has ended, and all that it said was told; or it said what makes no sense. `reason`
    // is one line: the last that it wrote on stderr, or how it ended. The last callback; may
    // destroy the link.
    std::function<void(const std::string& reason)> on_end;
    // Whether more messages can be taken. While they cannot, nothing is read, and so the other end
    // waits, until Resume().
    std::function<bool()> has_room;
  };

  // `name` is what the child is called where it says nothing itself. The error says why it could
  // not be started.
  static absl::StatusOr<std::unique_ptr<Link>> Start(boost::asio::io_context& io, std::string name,
                                                     std::vector<std::string> argv,
                                                     std::vector<std::string> env,
                                                     Callbacks callbacks);
  // Kills the child if it is still running, and its group in any case. No callback runs.
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Never blocks: what the other end does not take yet is kept. Not before on_greeting.
  void Send(const launch::v1::Down& message);

  // Answers on_which and on_send. Of the program only a piece is kept at a time.
  void Answer(const std::string& line);
  void SendProgram(std::shared_ptr<const std::string> compressed);
  // Bytes that are kept so.
  std::size_t pending_size() const { return input_ ? input_->pending_size() : 0; }

  // Ends what the other end reads, by which it knows that it is to end.
  void CloseInput();

  // There is room again.
  void Resume();

 private:
  Link(boost::asio::io_context& io, std::string name, Callbacks callbacks);
  absl::Status Spawn(boost::asio::io_context& io, std::vector<std::string> argv,
                     std::vector<std::string> env);

  // One of the streams that come from the child.
  struct Source {
    explicit Source(boost::asio::io_context& io) : end(io) {}
    boost::asio::posix::stream_descriptor end;
    bool is_open = true;
  };

  void Await(Source& source);
  // Takes one piece of what is there.
  void Read(Source& source);
  // Tells what messages there are; the error is about the stream.
  absl::Status Dispatch();
  // Hears what is asked before there is a greeting.
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
  // Nothing is read from output_, as there is no room.
  bool paused_ = false;
  std::unique_ptr<worker::Process> process_;
  bool has_exited_ = false;
  worker::ExitStatus exit_;
  base::Lifetime lifetime_;
};

}  // namespace muster::launcher
