// A rendezvous daemon as an object: the Coordinator behind its DaemonLoop and, when it listens, the
// gRPC fronts. `musterd` is a process that consists of one; an agent that hosts its job's
// rendezvous has one in its own process.
//
// With a keyring of several tenants (identity/keyring.h) each has its own Coordinator, and no
// request of one tenant can affect another's state.
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
#include "rendezvous/core/values/limits.h"
#include "rendezvous/core/values/quotas.h"
#include "rendezvous/fronts/daemon_loop.h"
#include "rendezvous/fronts/subscriptions.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/keeper/port_holder.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/net/shared_port.h"
#include "rendezvous/pages/metrics.h"
#include "rendezvous/server/tenant_openings.h"
#include "rendezvous/wire/liveness_probe.h"

namespace muster::rendezvous {

// Lives on the loop's thread. Start order: DaemonLoop, fronts, gRPC server; Stop goes the other
// way.
//
// It has more members than most classes: all tenants, the budgets that they share, and what each
// step of the start (resume, open tenants, prepare, listen) leaves to the next.
class Server {
 public:
  // With a journal, whose contents are in `contents`, every change is on disk before any client
  // learns of it. `on_fatal` is called if that is no longer possible; the process must exit then.
  struct Memory {
    Journal* journal = nullptr;  // must outlive the server
    JournalContents contents;
    std::function<void(const absl::Status&)> on_fatal;
    // Opens a tenant's journal (each tenant has its own), and then calls `opened`: before it
    // returns, having waited for the disk, or later from the loop.
    std::function<void(const std::string& tenant,
                       std::function<void(absl::StatusOr<OpenedJournal>)> opened)>
        open;
    // Tenants with jobs in their journals.
    std::vector<std::string> tenants;
    // For several daemons that elect a leader: whether this one still leads (DaemonLoop::LeadsBy),
    // and the minimum lease of agents (Coordinator::Options).
    std::function<bool()> leads{};
    Duration shortest_lease{};
  };

  // Whose jobs it serves: those of the user who started this process, or those of many users, who
  // must name them (Coordinator::Options::names_required).
  enum class Serves { kItsOwnJob, kManyJobs };

  explicit Server(boost::asio::io_context& io, Serves serves = Serves::kItsOwnJob);
  // Call Resume before anything else.
  Server(boost::asio::io_context& io, Memory memory);
  // Stops at once unless it has been stopped; runs the loop meanwhile.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Resumes the jobs in the journal and calls `resumed`, before it returns or, if leadership must
  // be kept alive meanwhile (Memory::leads), later from the loop, after as many turns as needed.
  // DataLoss if the journal holds an invalid job record; for a tenant's journal only the log and
  // the answers to that tenant's calls report it.
  //
  // Tenants' journals that do not open at once are opened in the background, many at a time, and
  // each tenant is served as soon as its own is open: its calls wait until then. `all_resumed` is
  // called after the last, possibly before `resumed`.
  using Resumed = std::function<void(const absl::Status&)>;
  void Resume(Resumed resumed, std::function<void()> all_resumed);

  // Listens at `endpoint`, a numeric address or a name that resolves to one of this machine's; port
  // 0 picks a free one. Without Listen the server is reached only through daemon_loop(), in this
  // process, and no thread, socket or gRPC object is created. AlreadyExists when another process
  // holds the port, otherwise the cause: "listen on 10.0.0.1:29400: Cannot assign requested
  // address".
  //
  // A separate process also holds the port, and answers probing agents if this process dies without
  // Stop (keeper/port_holder.h). It is forked before gRPC has its first thread.
  absl::Status Listen(const Endpoint& endpoint, const Credentials& credentials);

  // The same at `sockets`, for a daemon whose keeper also holds them and answers with `key` when
  // the daemon is dead; nullopt: no process answers. Waits for Prepare, if that was called.
  absl::Status Listen(std::vector<boost::asio::ip::tcp::acceptor> sockets,
                      std::optional<ProbeKey> key);

  // Prepares to listen on another thread, as that takes seconds with dozens of tenants. `prepared`
  // is called from the loop when done; Listen reports failures. Call at most once.
  void Prepare(const Credentials& credentials, std::function<void()> prepared);
  // Blocks until that is done.
  void AwaitPrepared();

  // For an agent's Welcome: the secret by which it recognizes the process that answers for this
  // server once it is dead. Empty if none will, as the server does not listen or the session has no
  // token.
  ProbeSecret knock_secret(const SessionToken& session) const {
    return knock_key_ ? SecretFor(*knock_key_, session) : ProbeSecret();
  }

  // The port it listens on; 0 when it does not.
  std::uint16_t port() const { return port_; }

  // Takes connections to that port that do not speak gRPC, with nothing read from them yet, for a
  // store that shares the port. Null: they are closed. Stop resets it.
  void OnStoreConnection(std::function<void(boost::asio::ip::tcp::socket)> take);

  // The jobs of the only user, or of this process.
  DaemonLoop& daemon_loop() { return *home_->daemon_loop; }

  // A tenant's, created if missing; Unavailable while the tenant's journal is being opened, or
  // cannot be.
  absl::StatusOr<DaemonLoop*> LoopOf(const std::string& tenant);
  // The same; null: the tenant does not exist, as it has made no call yet, or its journal is not
  // open.
  const DaemonLoop* FindLoop(const std::string& tenant) const;
  DaemonLoop* FindLoop(const std::string& tenant) {
    return const_cast<DaemonLoop*>(std::as_const(*this).FindLoop(tenant));
  }
  const JobFigures* FindFigures(const std::string& tenant) const;
  // Counts since it began to listen: refused calls and connections, what happened to connections,
  // and refusals by limit.
  std::uint64_t refused_calls() const;
  SharedPortStats connections() const;
  LimitCounts RefusedByLimit() const;
  // Bytes of all tenants' stores, including the overhead per key (limits::kStoreBytes).
  std::size_t store_bytes() const { return store_bytes_.taken(); }
  // True if it takes no new agents.
  bool drains() const { return !draining_.empty(); }

  // Notifies pages that show jobs of changes.
  ChangeFeed& changes() { return changes_; }

  // Over all tenants.
  int job_count() const;
  int agent_count() const;
  // See DaemonLoop.
  void Close(const std::string& why) {
    for (auto& [name, tenant] : tenants_) tenant.daemon_loop->Close(why);
  }
  void Freeze() {
    for (auto& [name, tenant] : tenants_) tenant.daemon_loop->Freeze();
  }

  // Takes no new agents from now on, and calls `drained` once the last has left. Jobs continue.
  void Drain(const std::string& why, std::function<void()> drained);

  // Ends every open call, stops listening, and then calls `stopped`, from the loop. May be called
  // again before that: each `stopped` is called.
  void Stop(std::function<void()> stopped);

 private:
  struct Listener;
  // One user's jobs.
  struct Tenant {
    std::unique_ptr<Journal> journal;  // outlives the DaemonLoop
    std::unique_ptr<JobFigures> figures = std::make_unique<JobFigures>();  // outlive the DaemonLoop
    std::unique_ptr<DaemonLoop> daemon_loop;
  };

  std::unique_ptr<DaemonLoop> MakeLoop(const std::string& tenant, JobFigures& figures);
  void ResumeTenants(std::function<void()> all_resumed);
  // One more tenant is resumed, or has failed.
  void OneIsResumed() {
    if (--to_be_resumed_ == 0) std::exchange(all_resumed_, nullptr)();
  }
  // Resumes the tenant from its journal, and keeps using the journal.
  void Restore(Tenant& tenant, Journal& journal, JournalContents contents, Resumed restored);
  void Add(const std::string& name, Tenant tenant);
  // Logs a reason once, until it changes.
  void SayWhyNotOpen(const std::string& tenant, const absl::Status& status);
  // Creates a DaemonLoop for the tenant from its journal.
  void Open(const std::string& tenant, Resumed opened);

  // The last part of Stop.
  void StopGrpc();

  // Reported by its guard.
  void AgentDied(const SessionToken& session);
  // An agent attends over the network as long as the result is held; the result holds `connection`.
  std::shared_ptr<void> Attend(std::shared_ptr<void> connection);

  boost::asio::io_context& io_;
  const bool many_jobs_;
  const bool durable_;
  Memory memory_;  // to be resumed; emptied by that
  TenantOpenings openings_{
      {}, [this](const std::string& tenant, auto opened) { Open(tenant, std::move(opened)); }};
  std::size_t to_be_resumed_ = 0;   // tenants
  std::set<std::string> unopened_;  // tenants not open yet, or for good
  std::function<void()> all_resumed_;
  PendingDeathNotices pending_death_notices_;
  ByteBudget store_bytes_{limits::kStoreBytes.most};
  ChangeFeed changes_{io_};
  ByteBudget log_readers_{limits::kLogReaders.most};
  ByteBudget log_deliveries_{limits::kLogDeliveries.most};
  // By name; a single user's name is empty.
  std::map<std::string, Tenant> tenants_;
  Tenant* const home_;
  CooperativeQueue turns_{io_};
  std::string draining_;                 // why; tenants opened later are drained, too
  std::unique_ptr<Listener> preparing_;  // becomes listener_
  std::unique_ptr<Listener> listener_;
  std::optional<ProbeKey> knock_key_;
  std::optional<PortHolder> port_holder_;
  std::uint32_t attending_ = 0;  // agents over the network
  std::uint16_t port_ = 0;
  base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous
