// A rendezvous daemon as an object: the Coordinator behind its Driver and, when it listens, the
// gRPC fronts. `musterd` is one of these with a process of its own; an agent that hosts its job's
// rendezvous has one beside its workers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "absl/status/status.h"
#include "rendezvous/fronts/driver.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/keeper/last_word.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/wire/knock.h"

namespace muster::rendezvous {

// Lives on the loop's thread. Start order: Driver, fronts, gRPC's server; Stop goes the other way.
class Server {
 public:
  // With a journal (what it remembers in `contents`): every change is in it before anybody hears of
  // it. `on_fatal` is told when that is no longer possible; the process must end then.
  struct Memory {
    Journal* journal = nullptr;  // must outlive the server
    JournalContents contents;
    std::function<void(const absl::Status&)> on_fatal;
  };

  // Whose jobs come: those of whoever started this process, or of many users, who must name them
  // (Coordinator::Options::names_required).
  enum class Serves { kItsOwnJob, kManyJobs };

  explicit Server(boost::asio::io_context& io, Serves serves = Serves::kItsOwnJob);
  // DataLoss in `*status` when what the journal remembers is no record of a job.
  Server(boost::asio::io_context& io, Memory memory, absl::Status* status);
  // Stops at once if it has not been stopped; runs the loop for as long as that takes.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Listens at `endpoint`, a numeric address or a name that resolves to one of this machine's; port
  // 0 takes a free one. Without Listen the server is reached only through driver(), in this
  // process, and no thread, socket or gRPC object is made. AlreadyExists when another process holds
  // the port, else the cause: "listen on 10.0.0.1:29400: Cannot assign requested address".
  //
  // A process of its own holds the port, too, and tells those who knock when this process has died
  // without Stop (keeper/last_word.h). It is forked before gRPC has its first thread.
  absl::Status Listen(const Endpoint& endpoint, const Credentials& credentials);

  // The same at `sockets`, of a daemon whose keeper holds them as well, and answers by `key` when
  // the daemon is dead.
  absl::Status Listen(std::vector<boost::asio::ip::tcp::acceptor> sockets, const KnockKey& key,
                      const Credentials& credentials);

  // What an agent is told in its Welcome, to know by it who answers for this server once it is
  // dead. Empty when nobody will, as it does not listen or the session has no token.
  KnockSecret knock_secret(const SessionToken& session) const;

  // The port it listens on; 0 when it does not.
  std::uint16_t port() const { return port_; }

  // Who takes connections to that port that do not speak gRPC, nothing of them read: a store that
  // shares the port. Null: they are closed. Forgotten by Stop.
  void OnStoreConnection(std::function<void(boost::asio::ip::tcp::socket)> take);

  Driver& driver() { return driver_; }

  // Takes no new agents from now on, and calls `drained` once the last has left. Jobs go on.
  void Drain(const std::string& why, std::function<void()> drained);

  // Ends every open call, stops listening, and then calls `stopped`, from the loop. May be called
  // again before that: each is told.
  void Stop(std::function<void()> stopped);

 private:
  struct Listener;

  // An agent attends over the network for as long as the result is held, which holds `connection`.
  std::shared_ptr<void> Attend(std::shared_ptr<void> connection);

  boost::asio::io_context& io_;
  Driver driver_;
  std::unique_ptr<Listener> listener_;
  std::optional<KnockKey> knock_key_;
  std::optional<LastWord> last_word_;
  std::uint32_t attending_ = 0;  // agents over the network
  std::uint16_t port_ = 0;
};

}  // namespace muster::rendezvous
