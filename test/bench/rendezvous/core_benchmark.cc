// The cost of the core's decisions alone, without event loop and network. To count instructions,
// run it under callgrind with --benchmark_filter and one iteration (--benchmark_min_time=0).
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <benchmark/benchmark.h>

#include "absl/strings/str_cat.h"
#include "rendezvous/core/coordinator.h"

namespace muster::rendezvous {
namespace {

constexpr TimePoint kStart{std::chrono::hours(1)};

JoinRequest RequestOf(int index, int nodes) {
  return {.run_id = "bench",
          .settings = {.min_nodes = nodes, .max_nodes = nodes},
          .node = {.node_id = absl::StrCat("node-", index),
                   .host = absl::StrCat("host", index),
                   .address = absl::StrCat("10.0.", index / 256, ".", index % 256),
                   .master_port = 40'000,
                   .slots = 8},
          .session = absl::StrCat("session-", index)};
}

// How long decisions held a loop that hears nobody else meanwhile.
class Turns {
 public:
  using Clock = std::chrono::steady_clock;

  // As the DaemonLoop does with each event: hear it, take what came of it, ask when time matters
  // next.
  template <typename Event>
  void Handle(Coordinator& coordinator, const Event& event) {
    const Clock::time_point begun = Clock::now();
    event();
    {
      const Outbox outbox = coordinator.TakeOutbox();
      benchmark::DoNotOptimize(coordinator.NextDeadline());
    }
    longest_ = std::max<Clock::duration>(longest_, Clock::now() - begun);
  }

  void Report(benchmark::State& state) const {
    state.counters["longest_turn_ms"] = std::chrono::duration<double, std::milli>(longest_).count();
  }

 private:
  Clock::duration longest_{};
};

// In the order of their addresses, or `step` addresses apart, which must have no divisor in common
// with how many there are.
void JoinAll(Coordinator& coordinator, int nodes, Turns& turns, std::int64_t step = 1) {
  for (int i = 0; i < nodes; ++i) {
    const JoinRequest request = RequestOf(static_cast<int>(i * step % nodes), nodes);
    turns.Handle(coordinator, [&] { coordinator.Hear(i + 1, request, kStart); });
  }
}

// N nodes join a new job, and are told to start.
void BM_JoinStorm(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0));
  Turns turns;
  for (auto _ : state) {
    Coordinator coordinator;
    JoinAll(coordinator, nodes, turns);
  }
  turns.Report(state);
  state.SetItemsProcessed(state.iterations() * nodes);
}
BENCHMARK(BM_JoinStorm)
    ->RangeMultiplier(8)
    ->Range(2, 1024)
    ->Arg(10'000)
    ->Arg(100'000)
    ->Unit(benchmark::kMicrosecond);

// The same, where none comes next to its neighbour: their ranks have to be sorted.
void BM_ScatteredJoinStorm(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0));
  Turns turns;
  for (auto _ : state) {
    Coordinator coordinator;
    JoinAll(coordinator, nodes, turns, /*step=*/7919);
  }
  turns.Report(state);
  state.SetItemsProcessed(state.iterations() * nodes);
}
BENCHMARK(BM_ScatteredJoinStorm)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMicrosecond);

// A worker of one of N nodes fails, all stop and join again.
void BM_Restart(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0));
  Coordinator coordinator;
  JoinRequest request = RequestOf(0, nodes);
  request.settings.max_restarts = 1'000'000'000;
  coordinator.Hear(1, request, kStart);
  const Incarnation incarnation =
      std::get<Welcome>(coordinator.TakeOutbox().directives[0].directive()).incarnation;
  Turns joins, turns;
  for (int i = 1; i < nodes; ++i) {
    joins.Handle(coordinator, [&] { coordinator.Hear(i + 1, RequestOf(i, nodes), kStart); });
  }
  RoundNumber round = 0;
  for (auto _ : state) {
    turns.Handle(coordinator, [&] {
      const WorkersOutcome failed{.failure = WorkerFailure{.exit_code = 1}};
      coordinator.Hear(1, WorkersExited{{incarnation, round}, failed}, kStart);
    });
    for (int i = 0; i < nodes; ++i) {
      JoinRequest again = RequestOf(i, nodes);
      again.after = round;
      turns.Handle(coordinator, [&] { coordinator.Hear(i + 1, again, kStart); });
    }
    ++round;
  }
  turns.Report(state);
  state.SetItemsProcessed(state.iterations() * nodes);
}
BENCHMARK(BM_Restart)
    ->RangeMultiplier(8)
    ->Range(2, 1024)
    ->Arg(10'000)
    ->Arg(100'000)
    ->Unit(benchmark::kMicrosecond);

// One beat in a job of N nodes.
void BM_Beat(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0));
  Coordinator coordinator;
  Turns turns;
  JoinAll(coordinator, nodes, turns);
  TimePoint now = kStart;
  std::int64_t number = 0;
  for (auto _ : state) {
    now += std::chrono::microseconds(1);
    ++number;
    turns.Handle(coordinator,
                 [&] { coordinator.Hear(1 + number % nodes, KeepAlive{number}, now); });
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Beat)->RangeMultiplier(8)->Range(2, 1024)->Arg(10'000)->Arg(100'000);

// The record of a job of N nodes that run is taken, as for each batch that changes the job. What is
// taken is let go by the thread that makes bytes of it.
void BM_Record(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0));
  Coordinator coordinator;
  Turns joins, turns;
  JoinAll(coordinator, nodes, joins);
  for (auto _ : state) {
    std::optional<JobRecord> record;
    turns.Handle(coordinator, [&] { record = coordinator.Record("bench", kStart); });
    state.PauseTiming();
    record.reset();
    state.ResumeTiming();
  }
  turns.Report(state);
}
BENCHMARK(BM_Record)->Arg(1024)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace muster::rendezvous
