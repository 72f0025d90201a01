#include "rendezvous/server/daemon_pages.h"

#include <sys/resource.h>

#include <utility>

#include "rendezvous/core/values/limits.h"
#include "rendezvous/fronts/daemon_loop.h"
#include "third_party/system/asio_wait.h"

namespace muster::rendezvous {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::nanoseconds Micros(int count) {
  return std::chrono::microseconds(count);
}

// From a keep-alive's cost to what costs a lease; no turn should take 10 ms.
constexpr std::chrono::nanoseconds kTurns[] = {Micros(10),      Micros(50),      Micros(100),
                                               Micros(500),     Micros(1000),    Micros(2500),
                                               Micros(5000),    Micros(10'000),  Micros(25'000),
                                               Micros(100'000), Micros(250'000), Micros(1'000'000)};

}  // namespace

LoopTurns::LoopTurns() : turns_(kTurns) {}

void LoopTurns::Run(boost::asio::io_context& io) {
  Clock::time_point begun = Clock::now();
  asio::woke = &begun;
  while (io.run_one() > 0) {
    const Clock::time_point now = Clock::now();
    turns_.Observe(now - begun);
    begun = now;
  }
  asio::woke = nullptr;
}

namespace {

void WriteLeases(const LeaseFigures& leases, Exposition& out) {
  out.Gauge("muster_leases", "Nodes with a lease, which must send keep-alives.");
  out.Sample(static_cast<double>(leases.count));
  out.Gauge("muster_leases_out_of_touch", "Nodes with a lease whose connection is broken.");
  out.Sample(static_cast<double>(leases.out_of_touch));
  out.Gauge("muster_lease_shortest_seconds",
            "Seconds until the first lease expires unless its node is heard; 0 without leases.");
  out.Sample(InSeconds(leases.shortest.value_or(Duration::zero())));
  out.Histogram("muster_keep_alive_lateness_seconds", "How late nodes' keep-alives arrived.");
  out.Buckets(leases.lateness != nullptr ? *leases.lateness : base::DurationHistogram({}));
}

void WriteJournal(const DaemonLoop* daemon_loop, Exposition& out) {
  const JournalWriter* const journal = daemon_loop == nullptr ? nullptr : daemon_loop->journal();
  out.Histogram("muster_journal_commit_seconds",
                "Time from handing changes to the journal until they are on disk.");
  out.Buckets(journal != nullptr ? journal->figures().commits : base::DurationHistogram({}));
  out.Counter("muster_journal_failed_commits_total",
              "Commits that failed because the disk was full.");
  out.Sample(journal == nullptr ? 0 : static_cast<double>(journal->figures().failed));
  out.Gauge("muster_journal_full",
            "1 while the journal cannot be written because the disk is full.");
  out.Sample(daemon_loop != nullptr && daemon_loop->disk_full() ? 1 : 0);
  out.Gauge("muster_journal_bytes",
            "Size of the journal on disk at its last commit; 0 without one and with etcd, which "
            "has its own metrics.");
  out.Sample(journal == nullptr ? 0 : static_cast<double>(journal->bytes()));
}

void WriteConnections(const SharedPortStats& stats, Exposition& out) {
  out.Counter("muster_connections_total",
              "Connections to the daemon's port: accepted, and closed by it, by reason.");
  const std::pair<const char*, std::uint64_t> fates[] = {{"accepted", stats.accepted},
                                                         {"no_descriptor", stats.refused_over_cap},
                                                         {"silent", stats.timed_out},
                                                         {"garbage", stats.garbage},
                                                         {"wrong_door", stats.wrong_door},
                                                         {"knock", stats.knocks},
                                                         {"idle", stats.idle},
                                                         {"slow_handshake", stats.slow}};
  for (const auto& [fate, count] : fates) {
    out.Sample(static_cast<double>(count), {{"fate", fate}});
  }
}

void WriteProcess(std::chrono::system_clock::time_point started, Exposition& out) {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  out.Counter("process_cpu_seconds_total", "CPU time used by the daemon.");
  out.Sample(seconds(usage.ru_utime) + seconds(usage.ru_stime));
  out.Gauge("process_start_time_seconds", "Start time of the daemon, in seconds since 1970.");
  out.Sample(InSeconds(started.time_since_epoch()));
  out.Gauge("muster_peak_memory_bytes", "Peak memory of the daemon.");
  out.Sample(static_cast<double>(usage.ru_maxrss) * 1024);
}

}  // namespace

void WriteKeptFigures(const DaemonLoop* daemon_loop, Exposition& out) {
  WriteLeases(daemon_loop == nullptr ? LeaseFigures{} : daemon_loop->Leases(), out);
  out.Gauge("muster_store_waiting_calls", "Store calls waiting for keys.");
  out.Sample(daemon_loop == nullptr ? 0 : static_cast<double>(daemon_loop->waiting_calls()));
  WriteJournal(daemon_loop, out);
  out.Counter(
      "muster_log_lost_bytes_total",
      "Bytes of workers' output that could not be written to log files, as reported by nodes.");
  out.Sample(daemon_loop == nullptr ? 0 : static_cast<double>(daemon_loop->log_bytes_lost()));
}

void WriteProcessFigures(const Server& server, const LoopTurns* turns,
                         std::chrono::system_clock::time_point started, Exposition& out) {
  out.Counter("muster_refused_calls_total",
              "Calls and connections refused for a missing token, a wrong one, or a limit.");
  out.Sample(static_cast<double>(server.refused_calls()));
  out.Counter("muster_limit_refusals_total",
              "Calls, messages and nodes refused or cut off, by limit.");
  const LimitCounts refused = server.RefusedByLimit();
  for (const Limit* const limit : limits::kAll) {
    if (limit->name.empty()) continue;
    out.Sample(static_cast<double>(refused.of(*limit)), {{"limit", limit->name}});
  }
  out.Gauge("muster_limit_most", "The limits.");
  for (const Limit* const limit : limits::kAll) {
    if (limit->name.empty()) continue;
    out.Sample(static_cast<double>(limit->most), {{"limit", limit->name}});
  }
  WriteConnections(server.connections(), out);
  out.Gauge("muster_store_bytes", "Bytes of all jobs' stores, including overhead of each key.");
  out.Sample(static_cast<double>(server.store_bytes()));
  out.Histogram("muster_loop_turn_seconds", "Time that each handler held the daemon's event loop.");
  out.Buckets(turns != nullptr ? turns->turns() : base::DurationHistogram({}));
  WriteProcess(started, out);
}

}  // namespace muster::rendezvous
