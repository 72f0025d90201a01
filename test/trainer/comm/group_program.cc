// One rank of group_test: the operations of groups against values computed by hand. Exits with 0 if
// all is right; prints what is not to stderr.
//
// usage: group_program gloo|shm SECONDS MODE...
//        operations, counts or bench; SECONDS is the
//        timeout
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "trainer/comm/world.h"
#include "trainer/worker/environment.h"

namespace muster::trainer {
namespace {

int failures = 0;

void Expect(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", what.c_str());
  ++failures;
}

std::string TypeName(at::ScalarType type) {
  return c10::toString(type);
}

// All types that are summed; the values used are whole numbers that each of them holds exactly.
constexpr at::ScalarType kTypes[] = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong};

void Operations(Group& group) {
  const int n = group.size();
  const int r = group.rank();
  const int sum = n * (n + 1) / 2;
  for (const at::ScalarType type : kTypes) {
    at::Tensor all = (at::arange(1, 11) * (r + 1)).to(type);
    group.AllReduce(all, Use::kOther);
    Expect(all.equal((at::arange(1, 11) * sum).to(type)), "all-reduce of " + TypeName(type));

    // Row i of each rank is (r + 1)(i + 1); two rows for each.
    const at::Tensor rows = at::arange(1, 2 * n + 1).view({2 * n, 1}) * at::ones({1, 3}, at::kLong);
    const at::Tensor own = group.ReduceScatter((rows * (r + 1)).to(type), Use::kOther);
    Expect(own.equal((rows.narrow(0, 2 * r, 2) * sum).to(type)),
           "reduce-scatter of " + TypeName(type));
  }
  at::Tensor mean = at::full({7}, r + 1, at::kDouble);
  group.AllReduce(mean, Use::kOther, 0.5);
  Expect(mean.equal(at::full({7}, 0.5 * sum, at::kDouble)), "a scaled all-reduce");
  const at::Tensor pending = at::full({7}, r + 1, at::kFloat);
  group.AllReduceAsync(pending, Use::kOther)->wait();
  Expect(pending.equal(at::full({7}, sum, at::kFloat)), "an all-reduce that is waited for");
  bool refused = false;
  try {
    group.ReduceScatter(at::zeros({n + 1, 2}), Use::kOther);
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  Expect(refused == (n > 1), "rows that ranks cannot share are refused");

  const at::Tensor gathered = group.AllGather(at::full({2, 3}, r), Use::kOther);
  Expect(gathered.equal(at::arange(n).repeat_interleave(2).view({2 * n, 1}).expand({2 * n, 3})),
         "all-gather, in the order of members");

  const at::Tensor last = at::full({5}, r, at::kFloat);
  group.Broadcast(last, n - 1, Use::kOther);
  Expect(last.equal(at::full({5}, n - 1, at::kFloat)), "broadcast from the last");
  const std::vector<at::Tensor> several = {at::full({5}, r, at::kFloat), at::full({2}, r)};
  group.Broadcast(several, n - 1, Use::kOther);
  Expect(
      several[0].equal(at::full({5}, n - 1, at::kFloat)) && several[1].equal(at::full({2}, n - 1)),
      "broadcast of several tensors");

  if (n > 1) {
    const int to = (r + 1) % n;
    const int from = (r + n - 1) % n;
    const at::Tensor first = at::zeros({4});
    const at::Tensor second = at::zeros({2, 2});
    const PendingWork awaited = group.ReceiveAsync(first, from, 7, Use::kOther);
    const PendingWork one = group.SendAsync(at::full({4}, 10.0 + r), to, 7, Use::kOther);
    const PendingWork two = group.SendAsync(at::full({2, 2}, 20.0 + r), to, 8, Use::kOther);
    group.Receive(second, from, 8, Use::kOther);  // sent last
    awaited->wait();
    one->wait();
    two->wait();
    Expect(first.equal(at::full({4}, 10.0 + from)) && second.equal(at::full({2, 2}, 20.0 + from)),
           "messages are told apart by their tags");
    if (r == 0) group.Send(at::full({3}, 5.0), n - 1, 1, Use::kOther);
    if (r == n - 1) {
      group.Receive(first.narrow(0, 0, 3), 0, 1, Use::kOther);
      Expect(first.narrow(0, 0, 3).equal(at::full({3}, 5.0)), "a message");
    }
  }

  Expect(group.Sum({1.0, double(r)}) == std::vector<double>({double(n), n * (n - 1) / 2.0}), "sum");
  std::vector<std::string> words;
  for (int rank = 0; rank < n; ++rank) words.push_back("rank " + std::to_string(rank));
  Expect(group.Gather("rank " + std::to_string(r) + " and more", 6) == words, "gather, cut off");
  group.Barrier();
}

// What `run` counts for `use`.
template <typename Run>
Traffic Counted(Group& group, Use use, const Run& run) {
  const Traffic before = group.traffic(use);
  run();
  return group.traffic(use).Since(before);
}

void Counts(Group& group) {
  const std::int64_t n = group.size();
  const std::int64_t bytes = 48'000;  // K; each of up to four ranks' part is whole
  const at::Tensor tensor = at::ones({bytes / 4});
  const bool shared = group.comm() == Comm::kShm;
  const auto collective = [&](const char* name, std::int64_t formula, const auto& run) {
    const Traffic traffic = Counted(group, Use::kParameters, run);
    Expect(traffic.formula_bytes == formula, std::string(name) + ": the formula");
    Expect(!traffic.counted_bytes, std::string(name) + ": what c10d sends nobody counts");
  };
  Expect(group.traffic(Use::kGradients).counted_bytes.has_value() == shared,
         "nothing yet is 0 where it will be counted");
  at::Tensor sum = tensor.clone();
  const Traffic reduced =
      Counted(group, Use::kGradients, [&] { group.AllReduce(sum, Use::kGradients); });
  const std::int64_t ring = 2 * (n - 1) * bytes / n;
  Expect(reduced.formula_bytes == ring, "all-reduce: the formula");
  Expect(reduced.counted_bytes.has_value() == shared, "all-reduce: counted in shared memory");
  // Shares are rounded to cache lines there.
  Expect(!shared || std::abs(*reduced.counted_bytes - ring) <= 128 * n, "all-reduce: as counted");

  collective("asynchronous all-reduce", ring,
             [&] { group.AllReduceAsync(sum, Use::kParameters)->wait(); });
  collective("reduce-scatter", (n - 1) * bytes / n,
             [&] { group.ReduceScatter(tensor, Use::kParameters); });
  collective("all-gather", (n - 1) * bytes, [&] { group.AllGather(tensor, Use::kParameters); });
  collective("broadcast", (n - 1) * bytes / n, [&] { group.Broadcast(sum, 0, Use::kParameters); });
  if (n > 1) {
    const int r = group.rank();
    const Traffic sent = Counted(group, Use::kActivations, [&] {
      const at::Tensor received = at::zeros_like(tensor);
      const PendingWork work =
          group.ReceiveAsync(received, static_cast<int>((r + n - 1) % n), 1, Use::kActivations);
      group.Send(tensor, static_cast<int>((r + 1) % n), 1, Use::kActivations);
      work->wait();
    });
    Expect(sent.formula_bytes == bytes && sent.counted_bytes == bytes, "a message: all of it");
  }
  const Traffic values = Counted(group, Use::kOther, [&] { group.Sum({1, 2, 3}); });
  Expect(values.formula_bytes == 2 * (n - 1) * 24 / n, "sum: its eight bytes for each value");
  const Traffic texts = Counted(group, Use::kOther, [&] { group.Gather("text", 100); });
  Expect(texts.formula_bytes == (n - 1) * 100, "gather: whole texts");
  const Traffic barrier = Counted(group, Use::kOther, [&] { group.Barrier(); });
  Expect(barrier.formula_bytes == 2 * (n - 1) * 8 / n, "barrier: a sum");
}

// Medians of microseconds of an exchange of 2 KB to 16 MB as a reduce-scatter, and as an all-reduce
// of which a part is kept, one after the other.
void Bench(Group& group) {
  for (const std::int64_t bytes : {2L << 10, 64L << 10, 1L << 20, 16L << 20}) {
    const at::Tensor whole = at::ones({bytes / 4});
    std::vector<double> times[2];
    for (int i = -3; i < 31; ++i) {
      for (int way = 0; way < 2; ++way) {
        group.Barrier();
        const auto start = std::chrono::steady_clock::now();
        if (way == 0) {
          group.ReduceScatter(whole, Use::kOther);
        } else {
          const at::Tensor sum = whole.clone();
          group.AllReduceAsync(sum, Use::kOther)->wait();
          sum.chunk(group.size())[static_cast<std::size_t>(group.rank())].clone();
        }
        const std::chrono::duration<double, std::micro> time =
            std::chrono::steady_clock::now() - start;
        if (i >= 0) times[way].push_back(time.count());
      }
    }
    for (std::vector<double>& way : times) std::sort(way.begin(), way.end());
    if (group.rank() != 0) continue;
    std::printf("%9ld bytes  reduce-scatter %8.0f us  all-reduce and a part %8.0f us\n", bytes,
                times[0][15], times[1][15]);
  }
}

int Main(const std::string& comm, int seconds, const std::vector<std::string>& modes) {
  const Environment env = ReadEnvironment(LookupInProcess).value();
  auto joined =
      World::Join(env, comm == "shm" ? Comm::kShm : Comm::kGloo, std::chrono::seconds(seconds));
  if (!joined.ok()) {
    std::fprintf(stderr, "%s\n", std::string(joined.status().message()).c_str());
    return 1;
  }
  World& world = **joined;
  for (const std::string& mode : modes) {
    if (mode == "operations") {
      Operations(world.all());
    } else if (mode == "counts") {
      Counts(world.all());
    } else if (mode == "bench") {
      Bench(world.all());
    } else {
      Expect(false, "there is a mode " + mode);
    }
  }
  world.all().Barrier();
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::trainer

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  return muster::trainer::Main(argv[1], std::atoi(argv[2]), {argv + 3, argv + argc});
}
