
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "base/text.h"
#include "rendezvous/daemon_log.h"
#include "rendezvous/daemon_parts.h"
#include "rendezvous/etcd/etcd.h"
#include "rendezvous/etcd/etcd_journal.h"
#include "rendezvous/etcd/journal_mirror.h"
#include "rendezvous/etcd/journal_source.h"
#include "rendezvous/etcd/leader.h"
#include "rendezvous/net/listening_socket.h"
#include "rendezvous/net/process_descriptors.h"
#include "rendezvous/server/daemon_pages.h"
#include "rendezvous/server/server.h"
#include "rendezvous/server/tenant_openings.h"
#include "rendezvous/server_config.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;

// How long a daemon that is elected waits to hear from etcd what it may have missed, before it
// reads everything. The news of the last leader's end came from the same place, and a watch that
// breaks is begun again within a tenth of a second.
constexpr std::chrono::milliseconds kCatchUpPatience(500);

constexpr char kStandsBy[] = "; standing by from now on";

// One of several daemons: it stands by until it is elected, and then leads until it ends.
//
// More than one object usually has, and more flags, as to lead is one sequence of steps that wait
// for one another: elected, caught up, resumed, prepared, listening. Each is taken once, and in
// most of them the daemon may be told to end, or lose the lead.
class HaDaemon {
 public:
  // `start` must outlive it.
  HaDaemon(const ServerConfig& config, const SupervisedDaemon& kept, DaemonStart& start,
           std::vector<tcp::acceptor> sockets)
      : io_(start.io),
        config_(config),
        kept_(kept),
        credentials_(*start.credentials),
        sockets_(std::move(sockets)),
        log_(start.log),
        turns_(start.turns),
        etcd_(etcd::ConnectToEtcd(io_, *std::move(start.etcd), SayTrouble)),
        signals_(io_, SIGTERM, SIGINT),
        turns_of_memory_(io_),
        mirror_(*etcd_, std::make_unique<etcd::BootTimeAlarm>(io_), config.etcd->root,
                [this](std::function<void()> part) { turns_of_memory_.Add(std::move(part)); },
                {.follows = [this](std::size_t bytes) { SayItFollows(bytes); },
                 .trouble = [this](const absl::Status& why) { SayItIsBehind(why); }}),
        catch_up_(io_) {}

  void Begin() {
    signals_.async_wait([this](const boost::system::error_code& error, int) {
      if (!error) GiveUpLead();
    });
    etcd::CheckEtcdTakesBatches(*etcd_, config_.etcd->root, [this](const absl::Status& status) {
      // Anything else is told when it is in the way.
      if (absl::IsInvalidArgument(status)) End(status);
    });
    StandBy();
    OpenStandbyPages();
  }

  // Never returns: it leaves from the loop.
  void Run() { RunLoop(io_, config_, turns_); }

 private:
  using Opened = std::function<void(absl::StatusOr<OpenedJournal>)>;

  // Daemons of one keeper tell each other by a file that all of them have.
  etcd::LeaseId LeaseBefore() const {
    etcd::LeaseId lease = 0;
    return ::pread(kept_.things().lock, &lease, sizeof lease, 0) == sizeof lease ? lease : 0;
  }
  void NoteLease(etcd::LeaseId lease) const {
    // Without the note the next one waits for the lease's end.
    if (::pwrite(kept_.things().lock, &lease, sizeof lease, 0) != sizeof lease) {
      spdlog::debug("the lease was not recorded");
    }
  }

  std::string Name() const {
    char host[256] = "";
    ::gethostname(host, sizeof host - 1);
    return absl::StrCat(host, " (", ToString(config_.listen), ", pid ", ::getpid(), ")");
  }

  void SayItFollows(std::size_t bytes) {
    const bool is_much = bytes >= 1'000'000;
    spdlog::info("standing by{}, with all state in memory: {:.1f} {}",
                 std::exchange(is_behind_, false) ? " as before" : "",
                 static_cast<double>(bytes) / (is_much ? 1e6 : 1e3), is_much ? "MB" : "kB");
  }
  void SayItIsBehind(const absl::Status& why) {
    is_behind_ = true;
    spdlog::warn(
        "cannot follow the leader's state; retrying, and if this daemon is elected first it reads "
        "everything then: {}",
        std::string(why.message()));
  }

  void StandBy() {
    candidate_.emplace(
        std::make_unique<etcd::BootTimeAlarm>(io_), *etcd_,
        // Whoever was here before is dead.
        etcd::Election::Options{.key = config_.etcd->root + "/leader",
                                .name = Name(),
                                .ttl = kLeadLease,
                                .of_the_dead = LeaseBefore()},
        etcd::Candidate::Handlers{
            .won = [this](etcd::Fence fence,
                          etcd::LeaseId lease) { TakeOver(std::move(fence), lease); },
            .follows =
                [this](const std::string& leader) {
                  spdlog::info("standing by; {} leads", leader);
                  mirror_.Follow();
                },
            .lost = [this](const std::string& why) { End(absl::AbortedError(why)); },
            .trouble = [](const std::string& why) { spdlog::warn("cannot lead: {}", why); }});
  }

  void OpenStandbyPages() {
    if (!config_.http) return;
    auto pages = StandbyPages::Open(io_, *config_.http, credentials_,
                                    [this] { return candidate_->StandsBy() && mirror_.follows(); });
    // Jobs can be gone on with, whether that can be shown or not.
    if (!pages.ok()) return spdlog::error("{}", std::string(pages.status().message()));
    standby_pages_ = *std::move(pages);
  }

  void TakeOver(etcd::Fence fence, etcd::LeaseId lease) {
    NoteLease(lease);
    credentials_.RereadKeys();
    began_ = std::chrono::steady_clock::now();
    fence_ = std::move(fence);
    catch_up_.expires_after(kCatchUpPatience);
    catch_up_.async_wait([this](const boost::system::error_code& error) {
      if (!error) mirror_.StopWaiting();
    });
    mirror_.TakeOver(fence_, [this](std::unique_ptr<etcd::MemorySource> memory) {
      catch_up_.cancel();
      has_followed_ = memory != nullptr;
      memory_ = std::move(memory);
      Open(config_.etcd->root, [this](absl::StatusOr<OpenedJournal> opened) {
        if (!opened.ok()) End(opened.status());
        home_ = *std::move(opened);
        Resume();
      });
    });
  }

  // The journal with this root. Nothing follows once the daemon is told to end.
  void Open(const std::string& root, Opened opened) {
    // What has been read from memory is gone from there: a second time etcd alone knows, and so it
    // does of who has come since it took over.
    const bool is_first = opened_.insert(root).second;
    std::shared_ptr<etcd::JournalSource> source = memory_;
    if (source == nullptr || !is_first) {
      source = std::make_shared<etcd::EtcdSource>(*etcd_, pages_, fence_);
    }
    etcd::OpenEtcdJournal(
        *etcd_, fence_, root, *source,
        [this, source, opened = std::move(opened)](absl::StatusOr<OpenedJournal> journal) {
          // It is in the middle of a call.
          boost::asio::post(io_, [source] {});
          if (ending_) return;
          if (absl::IsAborted(journal.status())) End(journal.status());
          opened(std::move(journal));
        });
  }

  void Resume() {
    tenants_ = TenantsOf(credentials_);
    server_.emplace(
        io_,
        Server::Memory{.journal = home_.journal.get(),
                       .contents = std::move(home_.contents),
                       .on_fatal = [this](const absl::Status& status) { End(status); },
                       .open = [this](const std::string& tenant,
                                      Opened opened) { Open(RootOf(tenant), std::move(opened)); },
                       .tenants = tenants_,
                       .leads = [this] { return candidate_->Leads(); },
                       .shortest_lease = kShortestLease});
    server_->Prepare(credentials_, [this] {
      is_prepared_ = true;
      Serve();
    });
    server_->Resume(
        [this](const absl::Status& status) {
          if (ending_) return;
          if (!status.ok()) End(status);
          is_resumed_ = true;
          Serve();
        },
        [this] { ForgetMemory(); });
  }

  // All that was remembered has been taken over.
  void ForgetMemory() {
    // What is left in it is of tenants that this daemon does not have. The rest has been copied,
    // and the memory of the copies would else be kept for what may never come.
    memory_.reset();
    boost::asio::post(io_, [] { malloc_trim(0); });
    all_is_resumed_ = true;
    if (!end_) return;
    SayWhoIsLeftOut();
    if (TenantsServed() < tenants_.size()) return;
    spdlog::info("every tenant is served, after {}; {}", TimeSinceElection(), WhatIsRemembered());
  }

  std::size_t TenantsServed() const {
    return static_cast<std::size_t>(std::count_if(
        tenants_.begin(), tenants_.end(),
        [this](const std::string& tenant) { return server_->FindLoop(tenant) != nullptr; }));
  }
  // Where what is remembered of some of the tenants could not be opened; why was said of each.
  void SayWhoIsLeftOut() const {
    const std::size_t served = TenantsServed();
    if (served == tenants_.size()) return;
    spdlog::warn("{} of {} tenants are served, after {}; {}", served, tenants_.size(),
                 TimeSinceElection(), WhatIsRemembered());
  }

  std::string TimeSinceElection() const {
    return base::Seconds(std::chrono::steady_clock::now() - began_);
  }
  std::string WhatIsRemembered() const {
    return absl::StrCat(base::Count(server_->job_count(), "job"), " with ",
                        base::Count(server_->agent_count(), "node"), " remembered in ",
                        config_.etcd->url);
  }

  // Once it can, and has what it serves.
  void Serve() {
    if (!is_prepared_ || !is_resumed_ || ending_) return;
    if (!candidate_->Leads()) {
      End(absl::AbortedError("its lease may expire before it can serve"));
    }
    Listen();
    spdlog::info("leading, after {}; {}, {}", TimeSinceElection(),
                 all_is_resumed_ ? WhatIsRemembered() : "opening the tenants' state",
                 has_followed_ ? "followed while standing by" : "read just now");
    if (all_is_resumed_) SayWhoIsLeftOut();
    standby_pages_.reset();
    auto pages = OpenPages(io_, config_, credentials_, *server_, turns_);
    if (!pages.ok()) spdlog::error("{}", std::string(pages.status().message()));
    signals_.cancel();
    end_.emplace(io_, *server_, config_, pages.ok() ? *std::move(pages) : nullptr,
                 [this] { GiveUpLead(); });
    SayWhereItListens(config_, *server_);
  }

  void Listen() {
    absl::Status status;
    for (tcp::acceptor& socket : sockets_) {
      boost::system::error_code error;
      // Held without it (BindAt); its connections have it from here, or, when this daemon is dead,
      // nobody could take the port before they are forgotten.
      socket.set_option(tcp::acceptor::reuse_address(true), error);
      if (!error) socket.listen(tcp::acceptor::max_listen_connections, error);
      if (error) {
        status = absl::AlreadyExistsError(
            absl::StrCat("listen on ", ToString(config_.listen), ": ", error.message()));
      }
    }
    if (status.ok()) status = server_->Listen(std::move(sockets_), std::nullopt);
    if (!status.ok()) EndAtOnce(log_, status, "", kCannotListen);
  }

  std::string RootOf(const std::string& tenant) const {
    return absl::StrCat(config_.etcd->root, "/tenants/", tenant);
  }

  // Aborted: another daemon may lead, and this one's keeper starts one that stands by.
  [[noreturn]] void End(const absl::Status& status) {
    // Where it is told to end, that is what it has come to.
    if (absl::IsAborted(status) && ending_) LeaveAtOnce();
    if (absl::IsAborted(status)) EndAtOnce(log_, status, kStandsBy, kLeadsNoLonger);
    // Its limits are too small, or another version has written what is there.
    const bool is_unusable = absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
    EndAtOnce(log_, status, "", is_unusable ? kUnusableEtcd : kNoJournal);
  }

  // Told to end: the next one need not wait.
  void GiveUpLead() {
    ending_ = true;
    if (!candidate_) LeaveAtOnce();
    candidate_->Resign([this] {
      NoteLease(0);
      LeaveAtOnce();
    });
  }

  // Nobody is served any more. To take apart what there is takes its time, and in that a second
  // signal would kill: nobody catches it once the signal set is gone.
  [[noreturn]] void LeaveAtOnce() {
    log_.End();
    std::_Exit(0);
  }

  boost::asio::io_context& io_;
  const ServerConfig& config_;
  const SupervisedDaemon& kept_;
  const Credentials& credentials_;
  std::vector<tcp::acceptor> sockets_;
  DaemonLog& log_;
  LoopTurns& turns_;
  const std::unique_ptr<etcd::Etcd> etcd_;
  etcd::PageReader pages_{*etcd_, [] { return std::chrono::steady_clock::now(); }};
  boost::asio::signal_set signals_;
  CooperativeQueue turns_of_memory_;
  etcd::JournalMirror mirror_;
  boost::asio::steady_timer catch_up_;
  std::optional<etcd::Candidate> candidate_;
  std::unique_ptr<StandbyPages> standby_pages_;  // until it leads
  etcd::Fence fence_;
  std::chrono::steady_clock::time_point began_{};
  std::shared_ptr<etcd::MemorySource> memory_;  // until all is resumed
  std::set<std::string> opened_;                // roots of journals
  std::vector<std::string> tenants_;            // whose jobs are remembered
  bool has_followed_ = false;
  bool is_prepared_ = false;  // can listen at once
  bool is_resumed_ = false;   // has the jobs of the only user
  bool all_is_resumed_ = false;
  bool is_behind_ = false;  // and has said so
  OpenedJournal home_;      // outlives the server
  std::optional<Server> server_;
  std::optional<GracefulShutdown> end_;
  bool ending_ = false;
};

}  // namespace

int RunLed(const ServerConfig& config, const SupervisedDaemon& kept, DaemonStart& start) {
  auto sockets = BindAt(start.io, config.listen);
  if (!sockets.ok()) return Fail(start.log, ListenFailureLine(sockets.status()), kCannotListen);
  const std::uint16_t port = PortOf(*sockets);
  HaDaemon daemon(config, kept, start, *std::move(sockets));
  // Whoever started it need not wait until it leads, which may be never.
  kept.AwaitLeave();
  kept.SayReady(port);
  daemon.Begin();
  daemon.Run();
  return 0;
}

}  // namespace muster::rendezvous
