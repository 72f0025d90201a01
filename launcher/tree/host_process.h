// Muster on a host of a launch tree: starts the host's node and the hosts in its charge, and
// carries bytes between them and its parent.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/status/status.h"
#include "base/lifetime.h"
#include "launcher/machine/reserved_port.h"
#include "launcher/tree/branch.h"
#include "launcher/tree/frame.h"
#include "launcher/tree/host_place.h"
#include "launcher/tree/node_process.h"
#include "proto/launch.pb.h"
#include "worker/output/console_sink.h"

namespace muster::launcher {

// Its standard input and output lead to its parent, which is the process where the command was
// typed or the host that started this one. When its input ends, or is silent for kSilence, the
// parent is gone, and everything here ends: the node as with SIGTERM, with the time to stop that
// the user gave it, and what is beyond as this one does. When this process is killed, the kernel
// kills the agent and the connections, and the agent's guard and the hosts beyond see to the rest.
//
// One at a time for each job and host: a second one is told so, and refuses, until the first is
// gone.
//
// A node that is killed by a signal is started again, three times, as a lost host is by its parent;
// not the one that serves the rendezvous, as the job's rounds have gone with it.
class HostProcess {
 public:
  HostProcess(boost::asio::io_context& io, std::function<void()> on_done);
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;

  // 0, or 1 when the host was refused or its parent made no sense.
  int exit_code() const { return exit_code_; }

 private:
  void AwaitInput();
  void ReadInput();
  void OnFrame(const std::string& message);
  void SetUp(const launch::v1::Setup& setup);
  // Where others reach a rendezvous that is served on this host; empty where there is none.
  std::string OwnEndpoint();
  void BeginNode(const std::string& endpoint);
  // The node was killed, and nobody had asked for it: it is to be started once more, after a while.
  // False if that makes no sense.
  bool StartsAgain(const std::string& endpoint, int signal);
  void OnResize(const launch::v1::Terminals& terminals);
  void OnSignal(const launch::v1::Signal& signal);
  void OnNodeEnd(int exit_code);
  void OnParentGone();
  void AwaitSilence();
  void Beat();
  void Refuse(const std::string& reason);
  void Send(const launch::v1::Up& message);
  void SendOutput(HostIndex host, launch::v1::Output::Stream stream, std::string_view bytes);
  // Whether what comes from the node and from beyond can be passed on.
  bool HasRoom();
  void MaybeDone();

  boost::asio::io_context& io_;
  const std::function<void()> on_done_;
  const std::string program_;

  boost::asio::posix::stream_descriptor input_;
  FrameReader reader_{kMaxFrameDown, /*expects_greeting=*/false};
  worker::ConsoleSink output_;
  bool awaits_room_ = false;
  boost::asio::steady_timer silence_;
  boost::asio::steady_timer beat_;
  std::chrono::steady_clock::time_point last_heard_;

  std::optional<launch::v1::Setup> setup_;
  // Held as long as this runs: by it a second process for this job and host knows of this one.
  std::unique_ptr<HostPlace> place_;
  std::optional<ReservedPort> port_;
  std::unique_ptr<Branch> branch_;
  std::unique_ptr<NodeProcess> node_;
  // Where others reach a rendezvous that is served here.
  std::string own_endpoint_;
  // The node was started, or will not be.
  bool node_is_decided_ = false;
  // A signal has asked the job to end.
  bool job_ends_ = false;
  int node_failures_ = 0;
  boost::asio::steady_timer node_pause_;
  bool parent_gone_ = false;
  bool branch_gone_ = false;
  int exit_code_ = 0;
  base::Lifetime lifetime_;
};

}  // namespace muster::launcher
