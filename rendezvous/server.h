// A rendezvous daemon as an object: the Coordinator behind its Driver and, when it listens, the
// gRPC fronts. `musterd` is a process that consists of one; an agent that hosts its job's
// rendezvous has one in its own process.
//
// With a keyring of several tenants (identity/keyring.h) each of them has a Coordinator of his own,
// and nothing that one says can touch what another has.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/lifetime.h"
#include "rendezvous/core/byte_budget.h"
#include "rendezvous/core/limit_counts.h"
#include "rendezvous/core/limits.h"
#include "rendezvous/early_deaths.h"
#include "rendezvous/fronts/change_feed.h"
#include "rendezvous/fronts/driver.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/keeper/last_word.h"
#include "rendezvous/later_turns.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/net/shared_port.h"
#include "rendezvous/pages/job_figures.h"
#include "rendezvous/tenant_openings.h"
#include "rendezvous/wire/knock.h"

namespace muster::rendezvous {

// Lives on the loop's thread. Start order: Driver, fronts, gRPC's server; Stop goes the other way.
class Server {
 public:
  // With a journal, whose contents are in `contents`, every change is on disk before anybody hears
  // of it. `on_fatal` is called when that is no longer possible; the process must end then.
  struct Memory {
    Journal* journal = nullptr;  // must outlive the server
    JournalContents contents;
    std::function<void(const absl::Status&)> on_fatal;
    // Opens the journal of a tenant, who has one of his own, and then calls `opened`: before it
    // returns, having waited for the disk, or later from the loop.
    std::function<void(const std::string& tenant,
                       std::function<void(absl::StatusOr<OpenedJournal>)> opened)>
        open;
    // Whose jobs are remembered.
    std::vector<std::string> tenants;
    // Where several daemons take turns: whether what this one says still counts (Driver::LeadsBy),
    // and how long leases are at least (Coordinator::Options).
    std::function<bool()> leads{};
    Duration shortest_lease{};
  };

  // Whose jobs it serves: those of whoever started this process, or those of many users, who must
  // name them (Coordinator::Options::names_required).
  enum class Serves { kItsOwnJob, kManyJobs };

  explicit Server(boost::asio::io_context& io, Serves serves = Serves::kItsOwnJob);
  // To be resumed before anything else.
  Server(boost::asio::io_context& io, Memory memory);
  // Stops at once if it has not been stopped; runs the loop while that takes.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Goes on with what is remembered and calls `resumed`, before it returns or, where a lead has to
  // be kept alive meanwhile (Memory::leads), later from the loop, after as many turns as it takes.
  // DataLoss when the journal holds something that is not the record of a job; that of a tenant's
  // is told in the log, and at his calls alone.
  //
  // Tenants' journals that are not open at once are then being opened, many at a time, and each
  // tenant is served as soon as he himself can be: calls of his wait until then. `all_resumed` is
  // called after the last, which may be before `resumed`.
  using Resumed = std::function<void(const absl::Status&)>;
  void Resume(Resumed resumed, std::function<void()> all_resumed);

  // Listens at `endpoint`, a numeric address or a name that resolves to one of this machine's; port
  // 0 takes a free one. Without Listen the server is reached only through driver(), in this
  // process, and no thread, socket or gRPC object is created. AlreadyExists when another process
  // holds the port, otherwise the cause: "listen on 10.0.0.1:29400: Cannot assign requested
  // address".
  //
  // A separate process also holds the port, and tells agents that knock when this process has died
  // without Stop (keeper/last_word.h). It is forked before gRPC has its first thread.
  absl::Status Listen(const Endpoint& endpoint, const Credentials& credentials);

  // The same at `sockets`, for a daemon whose keeper holds them as well and answers with `key` when
  // the daemon is dead; nullopt: nobody answers. It has been prepared, or is waited for.
  absl::Status Listen(std::vector<boost::asio::ip::tcp::acceptor> sockets,
                      std::optional<KnockKey> key);

  // Makes what it takes to listen, on a thread of its own, as that takes seconds where there are
  // dozens of tenants. `prepared` is called from the loop when it is there; Listen says if it
  // cannot be had. Once at most.
  void Prepare(const Credentials& credentials, std::function<void()> prepared);
  // Waits for that here.
  void AwaitPrepared();

  // What an agent is told in its Welcome, so that it recognizes who answers for this server once it
  // is dead. Empty when nobody will, as the server does not listen or the session has no token.
  KnockSecret knock_secret(const SessionToken& session) const;

  // The port it listens on; 0 when it does not.
  std::uint16_t port() const { return port_; }

  // Who takes connections to that port that do not speak gRPC, with nothing read from them yet: a
  // store that shares the port. Null: they are closed. Stop forgets it.
  void OnStoreConnection(std::function<void(boost::asio::ip::tcp::socket)> take);

  // The jobs of the only user there is, or of this process.
  Driver& driver() { return *home_->driver; }

  // A tenant's, from now on there; Unavailable while what is remembered of him is being opened, or
  // cannot be.
  absl::StatusOr<Driver*> DriverOf(const std::string& tenant);
  // The same; null: he is not there, as nobody has asked for him yet, or he is not open.
  const Driver* FindDriver(const std::string& tenant) const;
  Driver* FindDriver(const std::string& tenant) {
    return const_cast<Driver*>(std::as_const(*this).FindDriver(tenant));
  }
  const JobFigures* FindFigures(const std::string& tenant) const;
  // Calls and connections that were refused since it began to listen; what has become of
  // connections; and who was refused for which limit.
  std::uint64_t refused_calls() const;
  SharedPortStats connections() const;
  LimitCounts RefusedByLimit() const;
  // Bytes of all tenants' stores, with what their keys take beside them (limits::kStoreBytes).
  std::size_t store_bytes() const { return store_bytes_.taken(); }
  // It takes no new agents.
  bool drains() const { return !draining_.empty(); }

  // Tells whoever shows jobs when to show them anew.
  ChangeFeed& changes() { return changes_; }

  // Over all tenants.
  int job_count() const;
  int agent_count() const;
  // See Driver.
  void Close(const std::string& why);
  void Freeze();

  // Takes no new agents from now on, and calls `drained` once the last has left. Jobs continue.
  void Drain(const std::string& why, std::function<void()> drained);

  // Ends every open call, stops listening, and then calls `stopped`, from the loop. May be called
  // again before that: each `stopped` is called.
  void Stop(std::function<void()> stopped);

 private:
  struct Listener;
  // One user's jobs.
  struct Tenant {
    std::unique_ptr<Journal> journal;                                      // outlives the Driver
    std::unique_ptr<JobFigures> figures = std::make_unique<JobFigures>();  // outlive the Driver
    std::unique_ptr<Driver> driver;
  };

  std::unique_ptr<Driver> MakeDriver(const std::string& tenant, JobFigures& figures);
  void ResumeTenants(std::function<void()> all_resumed);
  // One tenant more is resumed, or cannot be.
  void OneIsResumed();
  // Has the tenant go on with what his journal remembers, and with the journal.
  void Restore(Tenant& tenant, Journal& journal, JournalContents contents, Resumed restored);
  void Add(const std::string& name, Tenant tenant);
  // Once, until it is something else.
  void SayWhyNotOpen(const std::string& tenant, const absl::Status& status);
  // Has a Driver for the tenant that goes on with what is remembered of him.
  void Open(const std::string& tenant, Resumed opened);

  // The last part of Stop.
  void StopGrpc();

  // Its guard says so.
  void AgentDied(const SessionToken& session);
  // An agent attends over the network for as long as the result is held; the result holds
  // `connection`.
  std::shared_ptr<void> Attend(std::shared_ptr<void> connection);

  boost::asio::io_context& io_;
  const bool many_jobs_;
  const bool durable_;
  Memory memory_;  // what is to be resumed, until it has been
  TenantOpenings openings_{
      {}, [this](const std::string& tenant, auto opened) { Open(tenant, std::move(opened)); }};
  std::size_t to_be_resumed_ = 0;   // tenants
  std::set<std::string> unopened_;  // those of them who are not there, as yet or for some reason
  std::function<void()> all_resumed_;
  EarlyDeaths early_deaths_;
  ByteBudget store_bytes_{limits::kStoreBytes.most};
  ChangeFeed changes_{io_};
  ByteBudget log_readers_{limits::kLogReaders.most};
  ByteBudget log_deliveries_{limits::kLogDeliveries.most};
  // By name; the only user's is empty.
  std::map<std::string, Tenant> tenants_;
  Tenant* const home_;
  LaterTurns turns_{io_};
  std::string draining_;                 // why; tenants that come later are drained, too
  std::unique_ptr<Listener> preparing_;  // what becomes of it is listener_
  std::unique_ptr<Listener> listener_;
  std::optional<KnockKey> knock_key_;
  std::optional<LastWord> last_word_;
  std::uint32_t attending_ = 0;  // agents over the network
  std::uint16_t port_ = 0;
  base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous
