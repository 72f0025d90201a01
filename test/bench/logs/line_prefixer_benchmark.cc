// The line prefixer on the data of one read from a full pipe: 64 KiB of lines whose length is the
// argument, and of a progress bar that is rewritten.
#include <string>

#include <benchmark/benchmark.h>

#include "worker/output/lines.h"

namespace muster::worker {
namespace {

constexpr std::size_t kRead = 64 * 1024;

std::string Lines(std::size_t length, char end) {
  std::string bytes;
  while (bytes.size() + length <= kRead) bytes.append(length - 1, 'x').push_back(end);
  return bytes;
}

void Feed(benchmark::State& state, const std::string& bytes, const std::string& prefix,
          CarriageReturn carriage_return = CarriageReturn::kEndsLine,
          std::vector<std::string> filters = {}) {
  LinePrefixer prefixer(LinePrefix(prefix, 4711), carriage_return);
  prefixer.ShowOnly(std::move(filters));
  const auto now = std::chrono::system_clock::now();
  for (auto _ : state) benchmark::DoNotOptimize(prefixer.Feed(bytes, now));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes.size()));
}

void BM_Lines(benchmark::State& state) {
  Feed(state, Lines(static_cast<std::size_t>(state.range(0)), '\n'), "[default0]:");
}
BENCHMARK(BM_Lines)->Arg(20)->Arg(100)->Arg(1000);

void BM_LinesWithTime(benchmark::State& state) {
  Feed(state, Lines(100, '\n'), "[default0 ${time}]:");
}
BENCHMARK(BM_LinesWithTime);

void BM_LinesFiltered(benchmark::State& state) {
  Feed(state, Lines(100, '\n'), "[default0]:", CarriageReturn::kEndsLine, {"loss"});
}
BENCHMARK(BM_LinesFiltered);

void BM_ProgressBar(benchmark::State& state) {
  Feed(state, Lines(100, '\r'), "[default0]:", CarriageReturn::kRewritesLine);
}
BENCHMARK(BM_ProgressBar);

}  // namespace
}  // namespace muster::worker
