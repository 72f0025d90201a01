// The node of a host: an agent, started as a person would start it by hand.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "absl/status/statusor.h"
#include "base/lifetime.h"
#include "base/unique_fd.h"
#include "launcher/tree/whole_lines.h"
#include "proto/launch.pb.h"
#include "worker/exit_status.h"
#include "worker/output/console_sink.h"
#include "worker/process/process.h"

namespace muster::launcher {

// `muster run` as a child process, with the token on a descriptor of its own, nothing to read on
// stdin (unless it `reads_input`, as a doctor's node does), and its output, its log and its report
// in pipes; its output in a pseudo-terminal where there is a terminal at the other end of the tree,
// so that workers have one, too. Killed when this process ends, however it ends; its own guard then
// ends its workers. Lives on the loop's main thread.
class NodeProcess {
 public:
  struct Callbacks {
    std::function<void(launch::v1::Output::Stream, std::string_view)> on_output;
    // It has ended, and all it wrote was told. The last callback; may destroy this.
    std::function<void(const worker::ExitStatus&)> on_end;
    // Whether more output can be taken; else nothing is read, until Resume().
    std::function<bool()> has_room;
  };

  static absl::StatusOr<std::unique_ptr<NodeProcess>> Start(boost::asio::io_context& io,
                                                            std::vector<std::string> argv,
                                                            std::vector<std::string> environment,
                                                            const std::string& token,
                                                            const launch::v1::Terminals& terminals,
                                                            bool reads_input, Callbacks callbacks);
  NodeProcess(const NodeProcess&) = delete;
  NodeProcess& operator=(const NodeProcess&) = delete;

  // To the agent alone: it decides what that means for its workers.
  void Signal(int number);

  // Those terminals have these sizes by now.
  void Resize(const launch::v1::Terminals& terminals);

  void Resume();

  // To its standard input, whole lines. Where it reads none, nothing happens.
  void Tell(std::string_view lines);

  // Descriptors of the agent: the token to read, and where it is to say what it says itself.
  static constexpr int kTokenFd = 3;
  static constexpr int kSpeechFd = 4;

 private:
  struct Source {
    Source(boost::asio::io_context& io, launch::v1::Output::Stream which)
        : end(io), stream(which) {}
    boost::asio::posix::stream_descriptor end;
    const launch::v1::Output::Stream stream;
    bool is_terminal = false;
    // Lines of this host must not mix with those of others.
    WholeLines lines;
    bool is_open = true;
    bool is_paused = false;
  };

  NodeProcess(boost::asio::io_context& io, Callbacks callbacks);
  void Await(Source& source);
  void Read(Source& source);
  void Hear(Source& source, std::string_view bytes);
  void MaybeEnd();

  const Callbacks callbacks_;
  base::UniqueFd input_end_;
  std::unique_ptr<worker::ConsoleSink> input_;
  Source stdout_;
  Source stderr_;
  // The log, and after a mark the report.
  Source speech_;
  bool reports_ = false;
  std::unique_ptr<worker::Process> process_;
  bool has_exited_ = false;
  worker::ExitStatus exit_;
  base::Lifetime lifetime_;
};

}  // namespace muster::launcher
