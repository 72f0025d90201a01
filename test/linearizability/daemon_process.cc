#include "test/linearizability/daemon_process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "rendezvous/identity/authority.h"
#include "rendezvous/identity/token.h"
#include "test/support/process_scan.h"
#include "test/support/temp_dir.h"
#include "test/support/wait_until.h"

namespace muster::linearizability {

DaemonProcess::DaemonProcess(std::string state_dir)
    : state_dir_(std::move(state_dir)),
      token_file_(state_dir_ + ".token"),
      token_(rendezvous::ReadOrMakeTokenFile(token_file_).value()),
      // Bound and not listening: a server that sets SO_REUSEADDR can still listen there.
      port_holder_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int on = 1;
  setsockopt(port_holder_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  // Ends the test where there is no place to run it.
  if (bind(port_holder_, generic, size) != 0) std::abort();
  if (getsockname(port_holder_, generic, &size) != 0) std::abort();
  port_ = ntohs(address.sin_port);
}

DaemonProcess::~DaemonProcess() {
  close(port_holder_);
}

rendezvous::Credentials DaemonProcess::credentials() const {
  return rendezvous::Credentials::FromToken(token_, rendezvous::Role::kAgent);
}

void DaemonProcess::Start() {
  process_.emplace(test::Command({std::filesystem::absolute("rendezvous/musterd"),
                                  "--listen=127.0.0.1:" + std::to_string(port_), "--ready-fd=1",
                                  "--token-file=" + token_file_, "--state-dir=" + state_dir_,
                                  "--log-level=warning"}));
}

bool DaemonProcess::WaitUntilListening() {
  return process_->WaitForOut("\n");
}

void DaemonProcess::Kill() {
  if (!process_) return;
  const std::vector<pid_t> daemons = test::ChildrenOf(process_->pid());
  // The keeper, which would start the daemon again; the kernel kills that with it.
  process_->Signal(SIGKILL);
  // Nothing outlives SIGKILL.
  if (!process_->Wait()) std::abort();
  const auto are_dead = [&daemons] {
    return std::none_of(daemons.begin(), daemons.end(), test::IsAlive);
  };
  if (!test::WaitUntil(are_dead)) std::abort();
  last_log_ = process_->err();
  process_.reset();
}

void DaemonProcess::Pause() {
  SignalDaemon(SIGSTOP);
}

void DaemonProcess::Continue() {
  SignalDaemon(SIGCONT);
}

void DaemonProcess::SignalDaemon(int signal) {
  if (!process_) return;
  for (const pid_t daemon : test::ChildrenOf(process_->pid())) kill(daemon, signal);
}

void DaemonProcess::ForgetState() {
  std::filesystem::remove_all(state_dir_);
}

}  // namespace muster::linearizability
