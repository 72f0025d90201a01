// The cost of a request after it has been decoded: the KeyValueStore alone.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "rendezvous/core/job/key_value_store.h"

namespace muster::rendezvous {
namespace {

constexpr std::string_view kValue = "a value of thirty-two bytes, say";

std::vector<std::string> Keys(std::int64_t count) {
  std::vector<std::string> keys;
  for (std::int64_t i = 0; i < count; ++i) {
    keys.push_back("/default_pg/0//cpu//0/" + std::to_string(i));
  }
  return keys;
}

// Of keys that are there already. The argument: how many.
void Set(benchmark::State& state) {
  const std::vector<std::string> keys = Keys(state.range(0));
  KeyValueStore store;
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(store.Set(keys[next], kValue));
    if (++next == keys.size()) next = 0;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(Set)->Arg(16)->Arg(16 << 10);

void Get(benchmark::State& state) {
  const std::vector<std::string> keys = Keys(state.range(0));
  KeyValueStore store;
  for (const std::string& key : keys) benchmark::DoNotOptimize(store.Set(key, kValue));
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(store.Get(keys[next]));
    if (++next == keys.size()) next = 0;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(Get)->Arg(16)->Arg(16 << 10);

void Add(benchmark::State& state) {
  KeyValueStore store;
  for (auto _ : state) benchmark::DoNotOptimize(store.Add("/bench/counter", 1));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(Add);

// So many wait for one key, which is then created and deleted. An item is one that was woken.
void FanOut(benchmark::State& state) {
  constexpr std::string_view kKey = "/bench/released";
  KeyValueStore store;
  for (auto _ : state) {
    for (std::int64_t i = 0; i < state.range(0); ++i) {
      benchmark::DoNotOptimize(store.Wait({&kKey, 1}, std::nullopt));
    }
    benchmark::DoNotOptimize(store.Set(kKey, kValue));
    benchmark::DoNotOptimize(store.TakeCompleted());
    store.Delete(kKey);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(FanOut)->Arg(1)->Arg(1000);

// Every one of so many ranks waits for the keys of all, which then come one by one: gloo's start.
// An item is one rank's wait for one key.
void AllWaitForAll(benchmark::State& state) {
  const std::vector<std::string> keys = Keys(state.range(0));
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  for (auto _ : state) {
    KeyValueStore store;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      benchmark::DoNotOptimize(store.Wait(views, std::nullopt));
    }
    for (const std::string& key : keys) benchmark::DoNotOptimize(store.Set(key, kValue));
    benchmark::DoNotOptimize(store.TakeCompleted());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0) * state.range(0));
}
BENCHMARK(AllWaitForAll)->Arg(128)->Arg(1024);

}  // namespace
}  // namespace muster::rendezvous
