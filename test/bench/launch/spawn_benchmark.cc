// The cost of starting a process for its parent, until exec: worker/process/spawn.h compared with
// posix_spawn. The argument is the memory that the parent has touched, in MiB: fork() has to copy
// its page tables, vfork() does not.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include <benchmark/benchmark.h>

#include "worker/process/spawn.h"

namespace muster::worker {
namespace {

constexpr char kProgram[] = "/bin/true";

// Touched, not just reserved.
std::unique_ptr<char[]> Ballast(std::int64_t mib) {
  const auto size = static_cast<std::size_t>(mib) << 20;
  std::unique_ptr<char[]> memory(new char[size + 1]);
  std::memset(memory.get(), 1, size);
  return memory;
}

void Wait(benchmark::State& state, pid_t pid) {
  state.PauseTiming();
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid || status != 0) state.SkipWithError("true has failed");
  state.ResumeTiming();
}

void BM_Spawn(benchmark::State& state) {
  const auto ballast = Ballast(state.range(0));
  SpawnRequest request;
  request.argv = {kProgram};
  for (auto _ : state) {
    const auto spawned = Spawn(request);
    if (!spawned.ok()) return state.SkipWithError("not started");
    Wait(state, spawned->pid);
  }
}
BENCHMARK(BM_Spawn)->Arg(0)->Arg(64)->UseRealTime()->Unit(benchmark::kMicrosecond);

void BM_PosixSpawn(benchmark::State& state) {
  const auto ballast = Ballast(state.range(0));
  char* const argv[] = {const_cast<char*>(kProgram), nullptr};
  char* const envp[] = {nullptr};
  for (auto _ : state) {
    pid_t pid = 0;
    if (::posix_spawn(&pid, kProgram, nullptr, nullptr, argv, envp) != 0) {
      return state.SkipWithError("not started");
    }
    Wait(state, pid);
  }
}
BENCHMARK(BM_PosixSpawn)->Arg(0)->Arg(64)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace muster::worker
