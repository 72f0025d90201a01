// What listens at a port where no Muster rendezvous answers: its first words say what it speaks.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "rendezvous/core/values/types.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/wire/liveness_probe.h"

namespace muster::rendezvous {

// What a program speaks whose first bytes, after a request of HTTP, are `answer`, as a phrase: "it
// speaks HTTP, ...". Empty if there are none: a rendezvous of Muster's closes such a connection
// without a word.
std::string WhatSpeaks(std::string_view answer);

// Connects to the first place of `endpoint` and calls `done` with WhatSpeaks(), once, from the
// loop, after a second at the latest.
void ProbeListener(boost::asio::io_context& io, const Endpoint& endpoint,
                   std::function<void(const std::string& speaks)> done);

// The same, for a tool that has no loop: blocks.
std::string ProbeListener(const Endpoint& endpoint);

// Asks at a daemon's port what has become of the daemon (wire/liveness_probe.h). Any number of
// probes at once, each over a connection of its own and for two seconds at most. Loop's thread
// only. Destroying it ends all of them; `io` must outlive it.
class Prober {
 public:
  // `sent`: when the question was asked.
  using Answered = std::function<void(const SessionToken& session, ProbeWord word, TimePoint sent)>;

  // `answered` is called from the loop, only for proven answers. It may destroy the Prober.
  Prober(boost::asio::io_context& io, Answered answered);
  ~Prober();

  void Probe(const boost::asio::ip::tcp::endpoint& daemon, const SessionToken& session,
             const ProbeSecret& secret);

 private:
  class Call;

  void End(const Call* call);

  boost::asio::io_context& io_;
  const Answered answered_;
  std::vector<std::shared_ptr<Call>> calls_;
};

}  // namespace muster::rendezvous
