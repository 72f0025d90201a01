// The daemon that histories are recorded against: a real musterd with a state directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "test/support/command.h"

namespace muster::linearizability {

// Listens on one port of 127.0.0.1 in all its lives; nobody else gets the port meanwhile. What is
// left of it is killed with this object.
class DaemonProcess {
 public:
  // Nothing is started yet. The directory is made by the daemon if it is missing.
  explicit DaemonProcess(std::string state_dir);
  ~DaemonProcess();
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  std::uint16_t port() const { return port_; }
  bool running() const { return process_.has_value(); }

  // Starts it. Returns before it listens: clients find out.
  void Start();
  // Waits until it listens; false when it ends, or says nothing, instead.
  [[nodiscard]] bool WaitUntilListening();
  // SIGKILL, to its keeper, too; returns once both are gone.
  void Kill();
  // SIGSTOP and SIGCONT, to the daemon and not to its keeper. Nothing happens unless it runs.
  void Pause();
  void Continue();
  // To be called while it is dead: it will have forgotten everything.
  void ForgetState();

  // What it had said on stderr when it was last killed.
  const std::string& last_log() const { return last_log_; }

 private:
  void SignalDaemon(int signal);

  const std::string state_dir_;
  int port_holder_ = -1;
  std::uint16_t port_ = 0;
  std::optional<test::Command> process_;
  std::string last_log_;
};

}  // namespace muster::linearizability
