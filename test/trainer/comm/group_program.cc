// One rank of group_test: the operations of groups against values computed by hand. Exits with 0 if
// all agree; prints differences to stderr.
//
// usage: group_program gloo|shm SECONDS MODE...
//        operations, counts, groups, lost-member, lost-in-operation or bench; SECONDS is the
//        timeout
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

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
#include "trainer/worker/launcher_link.h"

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

// A ring of messages, one of them too large for shared memory.
void Messages(Group& group) {
  const int n = group.size();
  const int r = group.rank();
  const int to = (r + 1) % n;
  const int from = (r + n - 1) % n;
  const at::Tensor first = at::zeros({4});
  const at::Tensor second = at::zeros({2, 2});
  const at::Tensor large = at::zeros({1 << 20});
  const PendingWork awaited = group.ReceiveAsync(first, from, 7, Use::kOther);
  const PendingWork most = group.ReceiveAsync(large, from, 7, Use::kOther);
  const PendingWork one = group.SendAsync(at::full({4}, 10.0 + r), to, 7, Use::kOther);
  const PendingWork all = group.SendAsync(at::full({1 << 20}, 30.0 + r), to, 7, Use::kOther);
  const PendingWork two = group.SendAsync(at::full({2, 2}, 20.0 + r), to, 8, Use::kOther);
  group.Receive(second, from, 8, Use::kOther);  // sent last
  for (const PendingWork& work : {awaited, one, two, most, all}) work->wait();
  Expect(first.equal(at::full({4}, 10.0 + from)) && second.equal(at::full({2, 2}, 20.0 + from)) &&
             large.equal(at::full({1 << 20}, 30.0 + from)),
         "messages are told apart by their tags");
  if (r == 0) group.Send(at::full({3}, 5.0), n - 1, 1, Use::kOther);
  if (r == n - 1) {
    group.Receive(first.narrow(0, 0, 3), 0, 1, Use::kOther);
    Expect(first.narrow(0, 0, 3).equal(at::full({3}, 5.0)), "a message");
  }
}

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
    Messages(group);
    group.PrepareMessages();
    Messages(group);
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
  const auto half = [&](const char* name, std::int64_t formula, const auto& run) {
    const Traffic traffic = Counted(group, Use::kActivations, run);
    Expect(traffic.formula_bytes == formula, std::string(name) + ": the formula");
    Expect(traffic.counted_bytes == (shared ? std::optional(formula) : std::nullopt),
           std::string(name) + ": as counted");
  };
  half("reduce-scatter", (n - 1) * bytes / n,
       [&] { group.ReduceScatter(tensor, Use::kActivations); });
  half("all-gather", (n - 1) * bytes, [&] { group.AllGather(tensor, Use::kActivations); });
  const Traffic values = Counted(group, Use::kOther, [&] { group.Sum({1, 2, 3}); });
  Expect(values.formula_bytes == 2 * (n - 1) * 24 / n, "sum: its eight bytes for each value");
  const Traffic texts = Counted(group, Use::kOther, [&] { group.Gather("text", 100); });
  Expect(texts.formula_bytes == (n - 1) * 100, "gather: whole texts");
  const Traffic barrier = Counted(group, Use::kOther, [&] { group.Barrier(); });
  Expect(barrier.formula_bytes == 2 * (n - 1) * 8 / n, "barrier: a sum");
}

std::unique_ptr<Group> Made(World& world, const std::string& name,
                            const std::vector<int>& members) {
  absl::StatusOr<std::unique_ptr<Group>> group = world.MakeGroup(name, members);
  if (group.ok()) return *std::move(group);
  std::fprintf(stderr, "%s\n", std::string(group.status().message()).c_str());
  std::exit(1);
}

// The sum of the members' ranks in the world, by their group.
int SumOfRanks(World& world, Group& group) {
  at::Tensor rank = at::full({1000}, world.rank(), at::kFloat);
  group.AllReduce(rank, Use::kOther);
  return rank.eq(rank[0]).all().item<bool>() ? static_cast<int>(rank[0].item<float>()) : -1;
}

// For four ranks.
void Groups(World& world) {
  const int r = world.rank();
  // Two groups at once; and ranks 0 and 2 make the group of four after theirs, 1 and 3 before.
  const std::vector<int> half = r % 2 == 0 ? std::vector<int>{0, 2} : std::vector<int>{3, 1};
  const std::string half_name = r % 2 == 0 ? "even" : "odd";
  std::unique_ptr<Group> mine;
  if (r % 2 == 0) mine = Made(world, half_name, half);
  const std::unique_ptr<Group> four = Made(world, "four", {2, 3, 0, 1});
  if (r % 2 == 1) mine = Made(world, half_name, half);
  Expect(mine->name() == half_name && mine->members() == half && mine->size() == 2, "a half");
  Expect(mine->members()[static_cast<std::size_t>(mine->rank())] == r, "this rank's place in it");
  Expect(four->rank() == (r + 2) % 4, "members are numbered as they are listed");
  const bool shared = world.comm() == Comm::kShm;
  Expect(mine->comm() == world.comm() && four->comm() == world.comm(),
         "groups on one host have the world's transport");
  for (int round = 0; round < 50; ++round) {
    Expect(SumOfRanks(world, *mine) == (r % 2 == 0 ? 2 : 4), "halves add up their own, at once");
    Expect(SumOfRanks(world, *four) == 6, "all four");
    Expect(SumOfRanks(world, world.all()) == 6, "the world");
  }
  Operations(*mine);
  Operations(*four);
  Counts(*mine);
  Expect(!shared || world.all().traffic(Use::kGradients).counted_bytes == 0,
         "each group counts its own");

  // A rank that is not in a group does nothing while the others create and use it: rank 3 is told
  // when.
  const at::Tensor told = at::zeros({1});
  if (r == 3) {
    world.all().Receive(told, 0, 1, Use::kOther);
  } else {
    const std::unique_ptr<Group> three = Made(world, "three", {0, 1, 2});
    Expect(SumOfRanks(world, *three) == 3, "three of four");
    Operations(*three);
    if (r == 0) world.all().Send(at::ones({1}), 3, 1, Use::kOther);
  }
  Expect(told.item<float>() == (r == 3 ? 1 : 0), "rank 3 was told afterwards");

  // The same name again is another group; a single rank is a group, too.
  const std::unique_ptr<Group> again = Made(world, half_name, half);
  Expect(SumOfRanks(world, *again) == (r % 2 == 0 ? 2 : 4), "a half anew");
  const std::unique_ptr<Group> alone = Made(world, "alone", {r});
  Expect(SumOfRanks(world, *alone) == r && alone->comm() == Comm::kGloo, "alone");
  Operations(*alone);

  for (const std::vector<int>& wrong :
       {std::vector<int>{}, std::vector<int>{(r + 1) % 4}, std::vector<int>{r, r},
        std::vector<int>{r, 4}, std::vector<int>{-1, r}}) {
    Expect(world.MakeGroup("wrong", wrong).status().code() == absl::StatusCode::kInvalidArgument,
           "a list of members that cannot be");
  }
  Expect(world.MakeGroup("", {r}).status().code() == absl::StatusCode::kInvalidArgument, "a name");
}

// The test kills rank 1 while it creates a group; rank 2 arrives after that. Exits the process:
// c10d's destructors wait for peers.
void LostMember(World& world) {
  const std::string pid = world.all().Gather(std::to_string(getpid()), 20)[1];
  if (world.rank() == 1) {
    std::printf("making\n");
    std::fflush(stdout);
  }
  if (world.rank() == 2) {
    const int process = static_cast<int>(syscall(SYS_pidfd_open, std::atoi(pid.c_str()), 0));
    pollfd ended = {process, POLLIN, 0};
    if (process >= 0) poll(&ended, 1, -1);
  }
  const absl::Status status = world.MakeGroup("half", {0, 1, 2}).status();
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  std::fflush(stderr);
  _exit(status.code() == absl::StatusCode::kUnavailable ? 0 : 1);
}

// Rank 1 leaves while rank 0 waits for it.
void LostInOperation(World& world) {
  const std::unique_ptr<Group> pair = Made(world, "tp/0", {0, 1});
  pair->Barrier();
  if (world.rank() == 1) _exit(0);
  try {
    pair->AllReduceAsync(at::ones({100}), Use::kOther)->wait();
    std::fprintf(stderr, "nobody is missing\n");
  } catch (const std::exception&) {
    std::fprintf(stderr, "%s\n", world.WhereRanksAre().c_str());
  }
  std::fflush(stderr);
  _exit(0);
}

// Medians in microseconds for 2 KB to 16 MB: as a reduce-scatter, as an all-reduce whose result is
// partly discarded, and as the all-gather that follows the reduce-scatter.
void Bench(Group& group) {
  for (const std::int64_t bytes : {2L << 10, 64L << 10, 1L << 20, 16L << 20}) {
    const at::Tensor whole = at::ones({bytes / 4});
    std::vector<double> times[3];
    const at::Tensor part = whole.chunk(group.size())[0];
    for (int i = -3; i < 31; ++i) {
      for (int way = 0; way < 3; ++way) {
        group.Barrier();
        const auto start = std::chrono::steady_clock::now();
        if (way == 0) {
          group.ReduceScatter(whole, Use::kOther);
        } else if (way == 2) {
          group.AllGather(part, Use::kOther);
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
    std::printf(
        "%9ld bytes  reduce-scatter %8.0f us  all-reduce and a part %8.0f us  all-gather %8.0f "
        "us\n",
        bytes, times[0][15], times[1][15], times[2][15]);
  }
}

// Medians in microseconds for a message from rank 0 to rank 1: half of a round trip.
void MessageBench(Group& group) {
  if (group.size() < 2) return;
  for (const bool prepared : {false, true}) {
    if (prepared) group.PrepareMessages();
    for (const std::int64_t bytes : {1L << 10, 64L << 10, 512L << 10}) {
      const at::Tensor tensor = at::ones({bytes / 4});
      std::vector<double> times;
      for (int i = -3; i < 101 && group.rank() < 2; ++i) {
        const auto start = std::chrono::steady_clock::now();
        if (group.rank() == 0) group.Send(tensor, 1, 1, Use::kOther);
        group.Receive(tensor, 1 - group.rank(), 1, Use::kOther);
        if (group.rank() == 1) group.Send(tensor, 0, 1, Use::kOther);
        const std::chrono::duration<double, std::micro> time =
            std::chrono::steady_clock::now() - start;
        if (i >= 0) times.push_back(time.count() / 2);
      }
      std::sort(times.begin(), times.end());
      if (group.rank() == 0) {
        std::printf("%9ld bytes  a message %s %8.0f us\n", bytes,
                    prepared ? "when prepared" : "as it comes  ", times[50]);
      }
    }
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
    } else if (mode == "groups") {
      Groups(world);
    } else if (mode == "lost-member") {
      LostMember(world);
    } else if (mode == "lost-in-operation") {
      LostInOperation(world);
    } else if (mode == "bench") {
      Bench(world.all());
      MessageBench(world.all());
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
