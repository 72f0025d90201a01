// Where to reach a daemon, the gRPC channel to it, which all its clients share, and single queries.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "rendezvous/client/agent_session.h"
#include "rendezvous/core/values/snapshot.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/endpoint.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace muster::rendezvous {

// Where to reach a daemon for a single query, and how long it may take.

struct DaemonOptions {
  Endpoint endpoint;
  Credentials credentials = Credentials::Plaintext();
  // For each answer, the connection included.
  std::chrono::milliseconds patience = std::chrono::seconds(10);
};

// What a daemon says about its jobs, for tools that ask once.

// All block until there is an answer, for `patience` at most. Errors, each one sentence: NotFound
// when the daemon has no such job; Unavailable, with the endpoint and the cause, when no Muster
// daemon answers there.

absl::StatusOr<JobSnapshot> DescribeJob(const DaemonOptions& daemon, const std::string& run_id);

// Every job, in order of run id.
absl::StatusOr<std::vector<JobSnapshot>> ListJobs(const DaemonOptions& daemon);

// The clock of the daemon's machine, against this one's.
struct ClockReading {
  // By how much the daemon's is ahead, taken to have been read half way between question and
  // answer.
  std::chrono::milliseconds ahead{0};
  // By how much that may be wrong, either way.
  std::chrono::milliseconds uncertainty{0};
};

// nullopt: the daemon answers, and is of a version that does not tell.
absl::StatusOr<std::optional<ClockReading>> ReadDaemonClock(const DaemonOptions& daemon);

// The daemon's address as gRPC names it.
std::string ChannelTarget(const Endpoint& endpoint);

// Of several places the one where a daemon answers, as those that stand by, or stand still, do not.
// Blocks until there is one, for `patience` at most; then, or if there is only one place, it is the
// first.
Endpoint FindLeader(const Endpoint& endpoint, std::chrono::milliseconds patience);

struct ChannelOptions {
  // How long a connection that broke is not made anew; each time that fails it takes longer.
  std::chrono::milliseconds first_reconnect{1000};
  std::chrono::milliseconds longest_reconnect = std::chrono::minutes(2);
  // The host that the user has named, where `target` is the address at which it was found: what a
  // site's certificate has to be for. Empty: the target's.
  std::string host;
  // The peer is given up when it has been silent for this long.
  std::chrono::milliseconds peer_silence = std::chrono::seconds(15);
  // A message that is larger ends its call.
  int max_message_bytes = 4 << 20;
};

// A channel with a TCP connection of its own. Nothing is sent before the first call.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& target,
                                           const Credentials& credentials,
                                           const ChannelOptions& options = {});

// What a gRPC status says about the connection to the daemon.

// What is read of a daemon's sentence.
inline constexpr std::size_t kMaxDaemonSentence = 4096;

// `proof` is what this end has shown.
ConnectionError ReadConnectionError(const grpc::Status& status, Credentials::Proof proof);

// What an error in doubt is, given what speaks there (WhatSpeaks): not Muster, if that is not
// empty.
ConnectionError Recognized(ConnectionError error, const std::string& speaks);

// Why a tool's call failed, in one sentence that begins with the endpoint. Unavailable when no
// Muster daemon answers there, or not within `patience`; otherwise the daemon's own code and words.
// May look for a second what else answers there.
absl::Status ExplainFailure(const grpc::Status& status, const DaemonOptions& daemon);

}  // namespace muster::rendezvous
