// The gRPC channel to a daemon: what all clients of one share.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

#include "rendezvous/client/agent_session.h"
#include "rendezvous/client/daemon_query.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/endpoint.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace muster::rendezvous {

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
