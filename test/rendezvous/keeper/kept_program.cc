// A keeper, and in the same program the daemon that it keeps, which is controlled by files in its
// directory.
//
//   kept_program DIRECTORY PORT [READY_FD]
//
// The keeper prints "port N". Each daemon, numbered from 1, prints "start NUMBER pid=P inode=I
// key=HEX.", where I is its program's inode; exits with 4 if there is a file `fail`; if there is a
// FIFO `slow`, waits until it is opened for writing; prints "left NUMBER" once it serves; and exits
// with 0 on SIGTERM.
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "absl/status/status.h"
#include "rendezvous/daemon_log.h"
#include "rendezvous/keeper/supervised_daemon.h"
#include "rendezvous/keeper/supervisor.h"
#include "rendezvous/net/listening_socket.h"

namespace muster::rendezvous {
namespace {

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

int Daemon(const std::string& directory, int port, const SupervisedDaemon& kept) {
  struct stat program;
  if (stat("/proc/self/exe", &program) != 0) return 1;
  std::string key;
  for (const unsigned char byte : kept.things().key) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    key += digits;
  }
  sigset_t told;
  sigemptyset(&told);
  sigaddset(&told, SIGTERM);
  sigprocmask(SIG_BLOCK, &told, nullptr);
  std::ofstream(directory + "/starts", std::ios::app) << '.';
  struct stat starts;
  if (stat((directory + "/starts").c_str(), &starts) != 0) return 1;
  const std::string number = std::to_string(starts.st_size);
  Say("start " + number + " pid=" + std::to_string(getpid()) +
      " inode=" + std::to_string(program.st_ino) + " key=" + key + ".");
  if (access((directory + "/fail").c_str(), F_OK) == 0) return 4;
  if (access((directory + "/slow").c_str(), F_OK) == 0) std::ifstream(directory + "/slow");
  kept.AwaitLeave();
  kept.SayReady(static_cast<std::uint16_t>(port));
  Say("left " + number + (starts.st_size > 1 ? ", again" : ""));
  int signal = 0;
  sigwait(&told, &signal);
  Say("ends");
  return 0;
}

int Main(std::vector<std::string> argv) {
  UseKeeperLog("musterd", STDERR_FILENO);
  std::signal(SIGPIPE, SIG_IGN);
  const std::string directory = argv.at(1);
  const int port = std::stoi(argv.at(2));
  const auto kept = SupervisedDaemon::FromEnvironment();
  if (!kept.ok()) return 1;
  if (*kept) return Daemon(directory, port, **kept);

  auto state = StateDirectory::Take(directory + "/state");
  if (!state.ok()) {
    std::fprintf(stderr, "%s\n", std::string(state.status().message()).c_str());
    return 4;
  }
  std::vector<int> sockets;
  {
    boost::asio::io_context io;
    auto listening = ListenAt(io, {"127.0.0.1", static_cast<std::uint16_t>(port)});
    if (!listening.ok()) {
      std::fprintf(stderr, "%s\n", std::string(listening.status().message()).c_str());
      return 3;
    }
    Say("port " + std::to_string(PortOf(*listening)));
    for (auto& each : *listening) sockets.push_back(each.release());
  }
  const int ready_fd = argv.size() > 3 ? std::stoi(argv[3]) : -1;
  return RunKeeper({.argv = argv,
                    .read_again = [argv] { return argv; },
                    .check = [] { return absl::OkStatus(); },
                    .sockets = std::move(sockets),
                    .state = *std::move(state),
                    .ready_fd = ready_fd});
}

}  // namespace
}  // namespace muster::rendezvous

int main(int argc, char** argv) {
  return muster::rendezvous::Main({argv, argv + argc});
}
