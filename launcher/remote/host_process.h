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
#include "launcher/machine/network.h"
#include "launcher/remote/branch.h"
#include "launcher/remote/launch_wire.h"
#include "launcher/remote/node_process.h"
#include "launcher/remote/own_program.h"
#include "proto/launch.pb.h"
#include "worker/output/console.h"

namespace muster::launcher {

// Its stdin and stdout lead to its parent, which is the root of the tree or the host that started
// it. When stdin ends or is silent for kSilence, the parent is gone and everything here stops: the
// node as on SIGTERM, within the user's time limit, and the hosts below in the same way. When this
// process is killed, the kernel kills the agent and the connections; the agent's guard and the
// hosts below clean up the rest.
//
// Only one runs per job and host: a second one refuses until the first has exited.
//
// A node that is killed by a signal is restarted up to three times, as its parent does with a lost
// host. The node that serves the rendezvous is not: the job's rounds died with it.
class HostProcess {
 public:
  HostProcess(boost::asio::io_context& io, std::function<void()> on_done);
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;

  // 0, or 1 if the host refused or its parent sent garbage.
  int exit_code() const { return exit_code_; }

 private:
  void AwaitInput();
  void ReadInput();
  void OnFrame(const std::string& message);
  void SetUp(const launch::v1::Setup& setup);
  // Where other hosts can reach a rendezvous on this host; empty if there is none.
  std::string OwnEndpoint();
  void BeginNode(const std::string& endpoint);
  // The node was killed although no one asked for that: schedules a restart. False if a restart is
  // pointless.
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
  // Whether output of the node and of hosts below can be passed on.
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
  // Lock held while this process runs; it makes a second process for this job and host refuse.
  std::unique_ptr<HostPlace> place_;
  std::optional<ReservedPort> port_;
  std::unique_ptr<Branch> branch_;
  std::unique_ptr<NodeProcess> node_;
  // Where other hosts can reach a rendezvous on this host.
  std::string own_endpoint_;
  // The node was started or never will be.
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

// `muster _host`: Muster on a host of a launch tree, started by Muster on another host. Not for
// users.

int HostCommand();

}  // namespace muster::launcher
