// What the ways in which a musterd runs have in common: what they say, and what they give up.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "rendezvous/daemon_log.h"
#include "rendezvous/keeper/supervised_daemon.h"
#include "rendezvous/keeper/supervisor.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/server/daemon_pages.h"
#include "rendezvous/server/server.h"
#include "rendezvous/server_config.h"

namespace muster::rendezvous {

// musterd's exit codes.
inline constexpr int kCannotAnswer = 1;
inline constexpr int kBadInput = 2;
inline constexpr int kCannotListen = 3;
inline constexpr int kNoJournal = 4;
inline constexpr int kUnfitMachine = 5;
// Another daemon may lead; its keeper starts it again, to stand by.
inline constexpr int kLeadsNoLonger = SupervisorPolicy::kLeadsNoLonger;
// Etcd, or what is in it, has to be changed before this daemon can work
// (SupervisorPolicy::kUnusable).
inline constexpr int kUnusableEtcd = SupervisorPolicy::kUnusable;

// "musterd: " and why, as a line.
std::string FailureLine(const absl::Status& status, const char* advice = "");
// The same where the server could not listen.
std::string ListenFailureLine(const absl::Status& status);

// Says the line and returns the code: before there is a log, and after.
int Fail(const std::string& line, int exit_code);
int Fail(DaemonLog& log, const std::string& line, int exit_code);

// What is remembered is not known any more, or another daemon goes on with it: nobody may be told
// anything. Agents ride it out. `consequence` ends the sentence.
[[noreturn]] void EndAtOnce(DaemonLog& log, const absl::Status& status, const char* consequence,
                            int exit_code);

// The start that all daemons have in common. The order of the members is the only possible one:
// files are read, then the privileges to read others are dropped, and only then there is a log,
// which has a thread.
struct DaemonStart {
  // `kept`: the daemon is a keeper's child; null for one that forgets its jobs.
  DaemonStart(const ServerConfig& config, const SupervisedDaemon* kept);

  const absl::StatusOr<Credentials> credentials;
  // Where jobs are kept; without an etcd the default, which is not used.
  absl::StatusOr<etcd::EtcdOptions> etcd;
  // What this system does not offer for dropping privileges.
  const std::vector<std::string> missing;
  DaemonLog log;
  boost::asio::io_context io{1};
  LoopTurns turns;
};

void SayWhereItListens(const ServerConfig& config, const Server& server);
void SayTrouble(const std::string& sentence);
void LogSecurityPosture(const ServerConfig& config, const Credentials& credentials,
                        const std::vector<std::string>& missing);

// Those who are known at the start; none where there is one user.
std::vector<std::string> TenantsOf(const Credentials& credentials);

// Null where nothing is to be shown.
absl::StatusOr<std::unique_ptr<DaemonPages>> OpenPages(boost::asio::io_context& io,
                                                       const ServerConfig& config,
                                                       const Credentials& credentials,
                                                       Server& server, const LoopTurns& turns);

// Until the daemon ends. Only where somebody may look is its loop measured.
void RunLoop(boost::asio::io_context& io, const ServerConfig& config, LoopTurns& turns);

// How a musterd ends when it is told to. Ends the server in good order at SIGTERM or SIGINT. A
// daemon that remembers its jobs ends at once; they go on when it is started again, or in another
// daemon. Else the first signal lets running jobs end, for as long as the configuration says; the
// second, or the end of that time, closes them, which tells their agents why.
class GracefulShutdown {
 public:
  // `pages` may be null; `stopped` is called, from the loop, when the server has stopped.
  GracefulShutdown(boost::asio::io_context& io, Server& server, const ServerConfig& config,
                   std::unique_ptr<DaemonPages> pages, std::function<void()> stopped = {});

 private:
  void AwaitSignal();
  void StopAtOnce();
  void BeginDrain(int signal);
  void Stop();

  Server& server_;
  std::unique_ptr<DaemonPages> pages_;
  const std::function<void()> stopped_;
  const bool remembers_;
  const std::chrono::seconds patience_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer timer_;
  bool draining_ = false;
  bool stopping_ = false;  // nothing is waited for any more
};

// A musterd that takes turns with others over an etcd.

// Stands by until it leads (etcd/election.h), with all that is remembered in memory
// (etcd/journal_mirror.h), then serves, until it is told to end or leads no longer. While it stands
// by nobody can connect, so that agents that name several daemons go on to the next at once.
// Returns the exit code; kLeadsNoLonger makes its keeper start another one, which stands by.
int RunLed(const ServerConfig& config, const SupervisedDaemon& kept, DaemonStart& start);

// For how long a daemon leads that takes turns with others, and what that asks of agents.

// After so long a silence etcd gives the lead to another daemon, which is found by the agents; etcd
// grants no less than one and a half times its election timeout, two seconds where that is not set.
// When etcd's own leader dies with the daemon, its members elect another first, in one or two
// rounds of up to twice that timeout, and that gives every lease its whole time anew. The agents'
// leases outlast all that.
inline constexpr std::chrono::seconds kLeadLease(1);
inline constexpr std::chrono::seconds kShortestLease(15);

}  // namespace muster::rendezvous
