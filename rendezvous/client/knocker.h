// Asks at a daemon's port what has become of the daemon (wire/knock.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "rendezvous/core/types.h"
#include "rendezvous/wire/knock.h"

namespace muster::rendezvous {

// Any number of knocks at once, each over a connection of its own and for two seconds at most.
// Loop's thread only. Destroying it ends all of them; `io` must outlive it.
class Knocker {
 public:
  // `sent`: when the question was asked.
  using Answered = std::function<void(const SessionToken& session, KnockWord word, TimePoint sent)>;

  // `answered` is called from the loop, only for proven answers. It may destroy the Knocker.
  Knocker(boost::asio::io_context& io, Answered answered);
  ~Knocker();

  void Knock(const boost::asio::ip::tcp::endpoint& daemon, const SessionToken& session,
             const KnockSecret& secret);

 private:
  class Call;

  void End(const Call* call);

  boost::asio::io_context& io_;
  const Answered answered_;
  std::vector<std::shared_ptr<Call>> calls_;
};

}  // namespace muster::rendezvous
