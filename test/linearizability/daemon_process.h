// The daemon for recording histories: a real musterd with a state directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rendezvous/identity/token.h"
#include "rendezvous/net/credentials.h"
#include "test/support/command.h"

namespace muster::linearizability {

// Listens on the same port of 127.0.0.1 each time it is started; no other program can get the port
// meanwhile. The destructor kills what is left of it.
class DaemonProcess {
 public:
  // Starts nothing yet. The daemon creates the directory if it is missing. Beside it stands the
  // file with its token.
  explicit DaemonProcess(std::string state_dir);
  ~DaemonProcess();
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  std::uint16_t port() const { return port_; }
  // What its clients prove.
  rendezvous::Credentials credentials() const;
  bool running() const { return process_.has_value(); }

  // Starts the daemon. Returns before it listens.
  void Start();
  // Waits until it listens; false if it ends or says nothing instead.
  [[nodiscard]] bool WaitUntilListening();
  // Sends SIGKILL to the daemon and its keeper; returns once both are gone.
  void Kill();
  // Send SIGSTOP and SIGCONT to the daemon, not to its keeper. No effect if it is not running.
  void Pause();
  void Continue();
  // Deletes its state. Call this only while it is dead.
  void ForgetState();

  // Its stderr up to the last Kill().
  const std::string& last_log() const { return last_log_; }

 private:
  void SignalDaemon(int signal);

  const std::string state_dir_;
  const std::string token_file_;
  const rendezvous::Token token_;
  int port_holder_ = -1;
  std::uint16_t port_ = 0;
  std::optional<test::Command> process_;
  std::string last_log_;
};

}  // namespace muster::linearizability
