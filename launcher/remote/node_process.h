// A host's node: an agent, started as a user would start it by hand.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "absl/status/statusor.h"

#include "base/lifetime.h"
#include "base/unique_fd.h"
#include "launcher/machine/environment.h"
#include "launcher/remote/launch_wire.h"
#include "proto/launch.pb.h"
#include "worker/exit_status.h"
#include "worker/output/console.h"
#include "worker/process/process.h"

namespace muster::launcher {

// `muster run` as a child process. The token is on a descriptor of its own. stdin is empty, unless
// the node `reads_input`, as a doctor's does. Output, log and report go to pipes; the output goes
// to a pseudo-terminal if the root has a terminal, so that workers see one. When this process dies,
// the kernel kills the child, whose guard then ends the workers. Lives on the loop's main thread.
class NodeProcess {
 public:
  struct Callbacks {
    std::function<void(launch::v1::Output::Stream, std::string_view)> on_output;
    // The child has exited and its output was delivered. The last callback; may destroy this.
    std::function<void(const worker::ExitStatus&)> on_end;
    // Whether more output can be handled; while it is false, nothing is read, until Resume().
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

  // Signals the agent only, which decides what its workers get.
  void Signal(int number);

  // New sizes of the root's terminals.
  void Resize(const launch::v1::Terminals& terminals);

  void Resume();

  // Writes whole lines to its stdin, if it has one.
  void Tell(std::string_view lines);

  // Descriptors in the agent: the token to read, and the one for its own messages.
  static constexpr int kTokenFd = 3;
  static constexpr int kSpeechFd = 4;

 private:
  struct Source {
    Source(boost::asio::io_context& io, launch::v1::Output::Stream which,
           std::function<bool()> show_part)
        : end(io), stream(which), part(io, std::move(show_part)) {}
    boost::asio::posix::stream_descriptor end;
    const launch::v1::Output::Stream stream;
    bool is_terminal = false;
    // Keeps lines of this host from mixing with those of other hosts.
    WholeLines lines;
    worker::PartialLineTimer part;
    bool is_open = true;
    bool is_paused = false;
  };

  NodeProcess(boost::asio::io_context& io, Callbacks callbacks);
  void Await(Source& source);
  void Read(Source& source);
  void Hear(Source& source, std::string_view bytes);
  // Passes on a line whose end does not come. False if there is more to read.
  bool PassOnPart(Source& source);
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

// The command line and environment of a host's agent.

// Whether this is a node of `muster doctor --hosts`, which reads commands on stdin.
bool IsDoctor(const launch::v1::Job& job);

// `program` run ... or launch ..., with the user's flags and those that the job and the host
// determine. `endpoint` is the rendezvous; unused if the job has none. A doctor's node gets
// --node=INDEX@ENDPOINT, its own endpoint.
std::vector<std::string> NodeCommand(const std::string& program, const launch::v1::Job& job,
                                     const launch::v1::Host& self, const std::string& endpoint);

// The host's own environment, overridden by the job's variables.
std::vector<std::string> NodeEnvironment(const launch::v1::Job& job, Environment own);

}  // namespace muster::launcher
