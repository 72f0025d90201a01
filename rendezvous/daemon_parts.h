// What the ways in which a musterd runs have in common: what they say, and what they give up.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/daemon_log.h"
#include "rendezvous/keeper/keeper_policy.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/pages/daemon_pages.h"
#include "rendezvous/pages/loop_turns.h"
#include "rendezvous/server.h"
#include "rendezvous/server_config.h"

namespace muster::rendezvous {

// musterd's exit codes.
inline constexpr int kCannotAnswer = 1;
inline constexpr int kBadInput = 2;
inline constexpr int kCannotListen = 3;
inline constexpr int kNoJournal = 4;
inline constexpr int kUnfitMachine = 5;
// Another daemon may lead; its keeper starts it again, to stand by.
inline constexpr int kLeadsNoLonger = KeeperPolicy::kLeadsNoLonger;
// Etcd, or what is in it, has to be changed before this daemon can work (KeeperPolicy::kUnusable).
inline constexpr int kUnusableEtcd = KeeperPolicy::kUnusable;

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

// What is needed once the credentials have been read: their files, which are looked at again, by
// the folders they are in, as a new file takes the place of an old one.
// Returns what this system does not offer for it. To be called before there is a log, which has a
// thread.
std::vector<std::string> GiveUpTheRest(const ServerConfig& config, const std::string& state_path);

void SayWhereItListens(const ServerConfig& config, const Server& server);
void SayTrouble(const std::string& sentence);
void SayHowSafeItIs(const ServerConfig& config, const Credentials& credentials,
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

}  // namespace muster::rendezvous
