#include "rendezvous/pages/daemon_figures.h"

#include <sys/resource.h>

#include <cstdint>
#include <utility>

#include "rendezvous/core/limit_counts.h"
#include "rendezvous/fronts/journal_writer.h"

namespace muster::rendezvous {
namespace {

void WriteLeases(const LeaseFigures& leases, Exposition& out) {
  out.Gauge("muster_leases", "Nodes that must let themselves be heard, as they have a lease.");
  out.Sample(static_cast<double>(leases.count));
  out.Gauge("muster_leases_out_of_touch", "Of these, those whose connection is broken.");
  out.Sample(static_cast<double>(leases.out_of_touch));
  out.Gauge("muster_lease_shortest_seconds",
            "Until the first of them is given up, unless it is heard; 0 without leases.");
  out.Sample(InSeconds(leases.shortest.value_or(Duration::zero())));
  out.Histogram("muster_keep_alive_lateness_seconds",
                "How much later than agreed nodes' keep-alives came.");
  out.Buckets(leases.lateness != nullptr ? *leases.lateness : base::DurationHistogram({}));
}

void WriteJournal(const Driver* driver, Exposition& out) {
  const JournalWriter* const journal = driver == nullptr ? nullptr : driver->journal();
  out.Histogram("muster_journal_commit_seconds",
                "From when changes are handed to the journal until they are on disk.");
  out.Buckets(journal != nullptr ? journal->figures().commits : base::DurationHistogram({}));
  out.Counter("muster_journal_failed_commits_total",
              "Commits for which there was no room on the disk.");
  out.Sample(journal == nullptr ? 0 : static_cast<double>(journal->figures().failed));
  out.Gauge("muster_journal_full", "1 while the journal cannot be written for want of room.");
  out.Sample(driver != nullptr && driver->disk_full() ? 1 : 0);
  out.Gauge("muster_journal_bytes",
            "What the journal takes on disk, as of its last commit; 0 without one, and over etcd, "
            "which shows its own.");
  out.Sample(journal == nullptr ? 0 : static_cast<double>(journal->bytes()));
}

void WriteConnections(const SharedPortStats& stats, Exposition& out) {
  out.Counter("muster_connections_total",
              "Connections to the daemon's port: all that were accepted, and those of them that "
              "it closed, by why.");
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
  out.Counter("process_cpu_seconds_total", "Processor time that the daemon has taken.");
  out.Sample(seconds(usage.ru_utime) + seconds(usage.ru_stime));
  out.Gauge("process_start_time_seconds", "When the daemon was started, in seconds since 1970.");
  out.Sample(InSeconds(started.time_since_epoch()));
  out.Gauge("muster_peak_memory_bytes", "The most memory that the daemon has had at once.");
  out.Sample(static_cast<double>(usage.ru_maxrss) * 1024);
}

}  // namespace

void WriteKeptFigures(const Driver* driver, Exposition& out) {
  WriteLeases(driver == nullptr ? LeaseFigures{} : driver->Leases(), out);
  out.Gauge("muster_store_waiting_calls", "Calls of the jobs' stores that wait for keys.");
  out.Sample(driver == nullptr ? 0 : static_cast<double>(driver->waiting_calls()));
  WriteJournal(driver, out);
  out.Counter("muster_log_lost_bytes_total",
              "Bytes of workers' output that log files did not take, as nodes have said.");
  out.Sample(driver == nullptr ? 0 : static_cast<double>(driver->log_bytes_lost()));
}

void WriteProcessFigures(const Server& server, const LoopTurns* turns,
                         std::chrono::system_clock::time_point started, Exposition& out) {
  out.Counter("muster_refused_calls_total",
              "Calls and connections that were refused: no token, another's, or a limit.");
  out.Sample(static_cast<double>(server.refused_calls()));
  out.Counter("muster_limit_refusals_total",
              "Calls, messages and nodes that were refused or cut off for a limit, by which.");
  const LimitCounts refused = server.RefusedByLimit();
  for (const Limit* const limit : limits::kAll) {
    if (limit->name.empty()) continue;
    out.Sample(static_cast<double>(refused.of(*limit)), {{"limit", limit->name}});
  }
  out.Gauge("muster_limit_most", "What these limits are.");
  for (const Limit* const limit : limits::kAll) {
    if (limit->name.empty()) continue;
    out.Sample(static_cast<double>(limit->most), {{"limit", limit->name}});
  }
  WriteConnections(server.connections(), out);
  out.Gauge("muster_store_bytes",
            "Bytes of all jobs' stores, with what each key takes beside its own.");
  out.Sample(static_cast<double>(server.store_bytes()));
  out.Histogram("muster_loop_turn_seconds",
                "How long each handler held the daemon's loop, in which nothing else is done.");
  out.Buckets(turns != nullptr ? turns->turns() : base::DurationHistogram({}));
  WriteProcess(started, out);
}

}  // namespace muster::rendezvous
