// Runs c10d's own client against a store on this machine, and prints as JSON how many adds, sets
// and gets it does per second, one after another.
//
//   c10d_client PORT SECONDS     so long each
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCallsBetweenClocks = 16;
constexpr std::size_t kValueBytes = 32;
constexpr double kWarmUpShare = 0.2;

template <typename Call>
double Rate(Call call, double seconds) {
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration<double>(seconds);
  long calls = 0;
  do {
    for (int i = 0; i < kCallsBetweenClocks; ++i) call();
    calls += kCallsBetweenClocks;
  } while (Clock::now() < end);
  return static_cast<double>(calls) / std::chrono::duration<double>(Clock::now() - start).count();
}

template <typename Call>
double Measure(Call call, double seconds) {
  Rate(call, seconds * kWarmUpShare);
  return Rate(call, seconds);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: c10d_client PORT SECONDS\n");
    return 2;
  }
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(std::atoi(argv[1]));
  options.waitWorkers = false;
  const double seconds = std::atof(argv[2]);
  c10d::TCPStore store("127.0.0.1", options);

  const std::vector<std::uint8_t> value(kValueBytes, 'v');
  const double adds = Measure([&] { store.add("counter", 1); }, seconds);
  // The protocol does not answer a set. The read makes it a round trip, in which the set is done.
  const double sets = Measure(
      [&] {
        store.set("key", value);
        store.add("counter", 0);
      },
      seconds);
  // The client waits for the key first: two round trips.
  const double gets = Measure([&] { store.get("key"); }, seconds);
  std::printf("{\"add\": %.1f, \"set\": %.1f, \"get\": %.1f}\n", adds, sets, gets);
}
