#include "rendezvous/server.h"

#include <future>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>
#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"
#include "rendezvous/core/limits.h"
#include "rendezvous/fronts/call_entrance.h"
#include "rendezvous/fronts/door_keeper.h"
#include "rendezvous/fronts/grpc_log_front.h"
#include "rendezvous/fronts/grpc_rendezvous_front.h"
#include "rendezvous/fronts/grpc_store_front.h"
#include "rendezvous/fronts/grpc_watch_front.h"
#include "rendezvous/net/grpc_server.h"
#include "rendezvous/net/listening_socket.h"
#include "rendezvous/net/shared_port.h"
#include "rendezvous/restoration.h"
#include "rendezvous/wire/death_notice.h"
#include "rendezvous/wire/peer.h"

namespace muster::rendezvous {
namespace {

// A life of a job must not be taken for one that another daemon was host to, or this one before it
// forgot everything: so each start takes some at random, and has 2^32 of them.
Incarnation AnyIncarnation() {
  std::random_device random;
  const Incarnation high = random() & 0x7fff'ffff;
  return (high << 32) + 1;
}

void LogTransition(const std::string& tenant, const Transition& transition) {
  const std::string of = tenant.empty() ? "" : "tenant=" + tenant + " ";
  const std::string node = transition.node.empty() ? "" : " node=" + transition.node;
  spdlog::info("{}run={} round={}{} {}", of, transition.run_id, transition.round, node,
               transition.text);
}

// A notice is a single small write of its sender's, and so it is all here or it is none.
std::optional<SessionToken> ReadDeathNotice(SharedPort::Socket connection) {
  char text[kMaxDeathNotice];
  boost::system::error_code error;
  connection.non_blocking(true, error);
  const std::size_t size = connection.read_some(boost::asio::buffer(text), error);
  return error ? std::nullopt : ParseDeathNotice({text, size});
}

}  // namespace

// What exists only while the server listens, in the order in which it depends on one another.
struct Server::Listener {
  Listener(boost::asio::io_context& io, Server& server, const Credentials& credentials)
      : secure(credentials.secure()),
        door_keeper(credentials),
        entrance(io, {.access = AccessOfAll(server),
                      .await_access =
                          [this, &server](const grpc::CallbackServerContext& call,
                                          std::function<void()> over) {
                            const std::string tenant = door_keeper.TenantOf(call);
                            return server.openings_.Await(tenant, std::move(over));
                          },
                      .calls = {.of_connection = limits::kCallsOfConnection.most,
                                .refused_of_connection = limits::kRefusedOfConnection.most,
                                .of_tenant = limits::kCallsOfTenant.most,
                                .of_all = limits::kCalls.most},
                      .on_refused =
                          [this](const Peer& peer, std::uint64_t refused) {
                            door_keeper.TooManyCalls(peer.address, refused);
                          },
                      .drop =
                          [this](const Peer& peer) {
                            if (port != nullptr) port->Drop(peer);
                          }}),
        rendezvous(
            io, entrance,
            {.attending =
                 [this, &server](const Peer& peer) {
                   return server.Attend(port ? port->Attend(peer) : nullptr);
                 },
             .knock_secret =
                 [&server](const SessionToken& session) { return server.knock_secret(session); }}),
        store(entrance, [this](const Peer& peer) { return Wait(peer); }),
        watch(io, entrance, server.changes(),
              {.watching = [this](const Peer& peer) { return Wait(peer); },
               .look_at_tokens = [credentials] { credentials.RereadKeys(); }}),
        logs(
            io, entrance, [this](const Peer& peer) { return Wait(peer); },
            [credentials] { credentials.RereadKeys(); }) {}

  // To be held while a call from there waits, watches or reads, so that its connection is not taken
  // for an idle one.
  absl::StatusOr<std::shared_ptr<void>> Wait(const Peer& peer) const {
    if (port == nullptr) return nullptr;
    return port->Wait(peer);
  }

  Access AccessOfAll(Server& server) {
    return [this, &server](Rpc rpc,
                           const grpc::CallbackServerContext& call) -> absl::StatusOr<Driver*> {
      // With few exceptions nobody is in the middle of his handshake.
      if (port != nullptr && port->awaits_calls()) port->Called(ParsePeer(call.peer()));
      const absl::StatusOr<std::string> tenant = door_keeper.Admit(rpc, call);
      if (!tenant.ok()) return tenant.status();
      return server.DriverOf(*tenant);
    };
  }

  const bool secure;
  DoorKeeper door_keeper;
  CallEntrance entrance;
  GrpcRendezvousFront rendezvous;
  GrpcStoreFront store;
  GrpcWatchFront watch;
  GrpcLogFront logs;
  std::future<GrpcServer::Started> starting;  // what becomes of it is `grpc`
  std::unique_ptr<GrpcServer> grpc;
  std::unique_ptr<SharedPort> port;
  std::vector<std::function<void()>> when_stopped;  // not empty once Stop was called
};

Server::Server(boost::asio::io_context& io, Serves serves)
    : io_(io), many_jobs_(serves == Serves::kManyJobs), durable_(false), home_(&tenants_[""]) {
  home_->driver = MakeDriver("", *home_->figures);
}

Server::Server(boost::asio::io_context& io, Memory memory)
    : io_(io), many_jobs_(true), durable_(true), memory_(std::move(memory)), home_(&tenants_[""]) {
  home_->driver = MakeDriver("", *home_->figures);
}

void Server::Resume(Resumed resumed, std::function<void()> all_resumed) {
  Restore(*home_, *memory_.journal, std::exchange(memory_.contents, {}),
          [this, resumed = std::move(resumed),
           all_resumed = std::move(all_resumed)](const absl::Status& status) mutable {
            if (status.ok()) ResumeTenants(std::move(all_resumed));
            resumed(status);
          });
}

void Server::ResumeTenants(std::function<void()> all_resumed) {
  const std::vector<std::string> tenants = std::exchange(memory_.tenants, {});
  all_resumed_ = std::move(all_resumed);
  to_be_resumed_ = tenants.size() + 1;
  unopened_.insert(tenants.begin(), tenants.end());
  for (const std::string& tenant : tenants) {
    // One that cannot be resumed is told so at his calls; the others go on.
    openings_.Ask(tenant).IgnoreError();
    if (!openings_.Await(tenant, [this] { OneIsResumed(); })) OneIsResumed();
  }
  OneIsResumed();
}

void Server::OneIsResumed() {
  if (--to_be_resumed_ == 0) std::exchange(all_resumed_, nullptr)();
}

std::unique_ptr<Driver> Server::MakeDriver(const std::string& tenant, JobFigures& figures) {
  const bool only = tenant.empty();
  const Incarnation first_incarnation = AnyIncarnation();
  return std::make_unique<Driver>(
      io_,
      [this, tenant, &figures](const Transition& transition) {
        LogTransition(tenant, transition);
        figures.Count(transition);
        changes_.Changed(tenant, transition);
      },
      Coordinator::Options{
          .store_bytes = only ? limits::kStoreBytes.most : limits::kStoreBytesOfTenant.most,
          .all_store_bytes = &store_bytes_,
          .names_required = many_jobs_,
          .first_incarnation = first_incarnation,
          .durable = durable_,
          .shortest_lease = memory_.shortest_lease},
      LogReaders::Options{
          .readers = only ? limits::kLogReaders.most : limits::kLogReadersOfTenant.most,
          .deliveries = only ? limits::kLogDeliveries.most : limits::kLogDeliveriesOfTenant.most,
          .all_readers = &log_readers_,
          .all_deliveries = &log_deliveries_,
          // No agent of another life of this daemon may take it for one that it was asked for.
          .first_delivery = first_incarnation});
}

void Server::Restore(Tenant& tenant, Journal& journal, JournalContents contents, Resumed restored) {
  Restoration::Later later;
  if (memory_.leads) {
    later = [this](auto part) { turns_.Add(std::move(part)); };
  }
  Restoration::Complete(
      std::make_shared<Restoration>(*tenant.driver, std::move(contents)), later,
      [this, &tenant, &journal, restored = std::move(restored)](const absl::Status& status) {
        if (status.ok()) {
          tenant.driver->UseJournal(journal, memory_.on_fatal);
          if (memory_.leads) tenant.driver->LeadBy(memory_.leads);
        }
        restored(status);
      });
}

absl::StatusOr<Driver*> Server::DriverOf(const std::string& tenant) {
  const auto found = tenants_.find(tenant);
  if (found != tenants_.end()) return found->second.driver.get();
  if (!durable_) {
    Tenant newcomer;
    newcomer.driver = MakeDriver(tenant, *newcomer.figures);
    Add(tenant, std::move(newcomer));
  } else if (absl::Status status = openings_.Ask(tenant); !status.ok()) {
    return status;
  }
  return tenants_.at(tenant).driver.get();
}

void Server::Open(const std::string& tenant, Resumed opened) {
  memory_.open(tenant, lifetime_.Guard([this, tenant, opened = std::move(opened)](
                                           absl::StatusOr<OpenedJournal> journal) {
    if (!journal.ok()) {
      SayWhyNotOpen(tenant, journal.status());
      return opened(
          absl::UnavailableError("the daemon cannot open what it remembers of this tenant"));
    }
    const auto newcomer = std::make_shared<Tenant>();
    newcomer->driver = MakeDriver(tenant, *newcomer->figures);
    newcomer->journal = std::move(journal->journal);
    Restore(*newcomer, *newcomer->journal, std::move(journal->contents),
            [this, tenant, newcomer, opened](const absl::Status& restored) {
              if (restored.ok()) {
                Add(tenant, std::move(*newcomer));
              } else {
                SayWhyNotOpen(tenant, restored);
              }
              opened(restored);
            });
  }));
}

void Server::SayWhyNotOpen(const std::string& tenant, const absl::Status& status) {
  const std::string why(status.message());
  if (!openings_.IsNews(tenant, why)) return;
  spdlog::error("tenant '{}': {}; tried again when he asks, at most once a minute in the end",
                tenant, why);
}

void Server::Add(const std::string& name, Tenant tenant) {
  if (!draining_.empty()) tenant.driver->Drain(draining_);
  Driver& driver = *tenants_.emplace(name, std::move(tenant)).first->second.driver;
  if (listener_ != nullptr) {
    driver.BeginToServe();
    early_deaths_.Tell(driver);
  }
  unopened_.erase(name);
  if (unopened_.empty()) early_deaths_.Clear();
}

const Driver* Server::FindDriver(const std::string& tenant) const {
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? nullptr : found->second.driver.get();
}

const JobFigures* Server::FindFigures(const std::string& tenant) const {
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? nullptr : found->second.figures.get();
}

std::uint64_t Server::refused_calls() const {
  return listener_ == nullptr ? 0 : listener_->door_keeper.refused();
}

SharedPortStats Server::connections() const {
  const bool listens = listener_ != nullptr && listener_->port != nullptr;
  return listens ? listener_->port->stats() : SharedPortStats{};
}

LimitCounts Server::RefusedByLimit() const {
  return listener_ == nullptr ? LimitCounts{} : listener_->entrance.RefusedByLimit();
}

int Server::job_count() const {
  int count = 0;
  for (const auto& [name, tenant] : tenants_) count += tenant.driver->job_count();
  return count;
}

int Server::agent_count() const {
  int count = 0;
  for (const auto& [name, tenant] : tenants_) count += tenant.driver->agent_count();
  return count;
}

void Server::Close(const std::string& why) {
  for (auto& [name, tenant] : tenants_) tenant.driver->Close(why);
}

void Server::Freeze() {
  for (auto& [name, tenant] : tenants_) tenant.driver->Freeze();
}

Server::~Server() {
  if (preparing_ != nullptr) {
    // Nobody is told that it could begin.
    lifetime_.End();
    GrpcServer::Started started = preparing_->starting.get();
    if (started.ok()) {
      preparing_->grpc = *std::move(started);
      listener_ = std::move(preparing_);
    }
  }
  if (listener_ == nullptr) return;
  bool stopped = false;
  Stop([&stopped] { stopped = true; });
  io_.restart();
  while (!stopped && io_.run_one() > 0) {
  }
}

absl::Status Server::Listen(const Endpoint& endpoint, const Credentials& credentials) {
  auto sockets = ListenAt(io_, endpoint);
  if (!sockets.ok()) return sockets.status();
  std::vector<int> fds;
  for (boost::asio::ip::tcp::acceptor& socket : *sockets) fds.push_back(socket.native_handle());
  const KnockKey key = MakeKnockKey();
  absl::StatusOr<LastWord> last_word = LastWord::Start(fds, key);
  if (last_word.ok()) {
    last_word_.emplace(*std::move(last_word));
  } else {
    spdlog::warn("{}: should this process be killed, other nodes will not be told",
                 std::string(last_word.status().message()));
  }
  Prepare(credentials, [] {});
  const absl::Status status = Listen(*std::move(sockets), key);
  if (!status.ok()) last_word_.reset();
  return status;
}

void Server::Prepare(const Credentials& credentials, std::function<void()> prepared) {
  preparing_ = std::make_unique<Listener>(io_, *this, credentials);
  preparing_->starting = GrpcServer::StartAside(
      io_, credentials, preparing_->entrance.gate(), preparing_->entrance,
      {.streams = limits::kStreams.most, .window_bytes = limits::kWindowBytes.most},
      lifetime_.Guard(std::move(prepared)));
}

void Server::AwaitPrepared() {
  preparing_->starting.wait();
}

absl::Status Server::Listen(std::vector<boost::asio::ip::tcp::acceptor> sockets,
                            std::optional<KnockKey> key) {
  const std::uint16_t port = PortOf(sockets);
  auto listener = std::move(preparing_);
  GrpcServer::Started grpc = listener->starting.get();
  if (!grpc.ok()) {
    return absl::Status(grpc.status().code(),
                        absl::StrCat("listen on port ", port, ": ", grpc.status().message()));
  }
  listener->grpc = *std::move(grpc);
  listener->port = std::make_unique<SharedPort>(
      io_, std::move(sockets),
      [grpc = listener->grpc.get()](SharedPort::Socket connection) {
        grpc->Take(std::move(connection));
      },
      [this](SharedPort::Socket connection) {
        const std::optional<SessionToken> session = ReadDeathNotice(std::move(connection));
        if (session) AgentDied(*session);
      },
      SharedPortOptions{
          .secure = listener->secure,
          .on_failed = [door_keeper = &listener->door_keeper](
                           const std::string& address) { door_keeper->TurnedAway(address); },
          .take_calls = [gate = listener->entrance.gate()] { return gate->TakeShown(); },
          .on_hidden_calls =
              [door_keeper = &listener->door_keeper, entrance = &listener->entrance](
                  const std::string& address, std::uint64_t calls) {
                entrance->CountRefused(limits::kHiddenCalls);
                door_keeper->HiddenCalls(address, calls);
              }});
  listener_ = std::move(listener);
  knock_key_ = key;
  port_ = port;
  for (auto& [name, tenant] : tenants_) tenant.driver->BeginToServe();
  return absl::OkStatus();
}

void Server::AgentDied(const SessionToken& session) {
  // A session's token is known to its agent and to us alone; so whose it is need not be said.
  for (auto& [name, tenant] : tenants_) tenant.driver->AgentDied(session);
  if (!unopened_.empty()) early_deaths_.Add(session);
}

std::shared_ptr<void> Server::Attend(std::shared_ptr<void> connection) {
  const auto count = [this](std::uint32_t now) {
    attending_ = now;
    if (last_word_) last_word_->SetAttending(now);
  };
  count(attending_ + 1);
  return std::shared_ptr<void>(
      this, [this, count, connection = std::move(connection)](void*) { count(attending_ - 1); });
}

KnockSecret Server::knock_secret(const SessionToken& session) const {
  return knock_key_ ? SecretFor(*knock_key_, session) : KnockSecret();
}

void Server::OnStoreConnection(std::function<void(boost::asio::ip::tcp::socket)> take) {
  if (listener_ != nullptr && listener_->port != nullptr) {
    listener_->port->OnStoreConnection(std::move(take));
  }
}

void Server::Drain(const std::string& why, std::function<void()> drained) {
  draining_ = why;
  // The last of them to become idle says so.
  const auto busy = std::make_shared<std::size_t>(tenants_.size());
  for (auto& [name, tenant] : tenants_) {
    tenant.driver->Drain(why);
    tenant.driver->WhenIdle([busy, drained] {
      if (--*busy == 0) drained();
    });
  }
}

void Server::Stop(std::function<void()> stopped) {
  if (listener_ == nullptr) {
    boost::asio::post(io_, std::move(stopped));
    return;
  }
  listener_->when_stopped.push_back(std::move(stopped));
  if (listener_->when_stopped.size() > 1) return;
  // It holds the port as well.
  last_word_.reset();
  listener_->port.reset();
  listener_->entrance.Close();
  listener_->rendezvous.EndStreams();
  listener_->store.Close();
  listener_->logs.EndStreams();
  port_ = 0;
  listener_->watch.End([this] { StopGrpc(); });
}

void Server::StopGrpc() {
  listener_->grpc->Stop([this] {
    const std::vector<std::function<void()>> when_stopped = std::move(listener_->when_stopped);
    listener_.reset();
    // One of them may destroy this server.
    for (const std::function<void()>& stopped : when_stopped) stopped();
  });
}

}  // namespace muster::rendezvous
