// One rank of comm_test and of the all-reduce benchmark: tests all-reduce against Gloo's own, and
// other users of groups than DDP. Exits with 0 if all agree; prints differences to stderr.
//
// usage: reduce_program auto|gloo|shm MODE... equal, batch-norm, average, for-ever or bench
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/utils.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "trainer/comm/host/operation_log.h"
#include "trainer/comm/world.h"
#include "trainer/compat/torch_compat.h"
#include "trainer/parallel/data_parallel.h"
#include "trainer/parallel/ddp.h"
#include "trainer/worker/launcher_link.h"

namespace muster::trainer {
namespace {

int failures = 0;

void Expect(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", what.c_str());
  ++failures;
}

double Difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

// c10d does not count what it sends.
bool Counts(const Group& group) {
  return group.comm() == Comm::kShm && group.layout().hosts == 1;
}

void GlooSum(Group& group, at::Tensor& tensor) {
  group.AllReduceAsync(tensor, Use::kOther)->wait();
}

// Every type and many sizes, against Gloo's own all-reduce.
void Equal(Group& group) {
  group.PrepareAllReduce(300'000, {.piece_bytes = 100'000});
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    for (const std::int64_t size : {1, 1000, 65536, 300'001}) {
      torch::manual_seed(1000 + group.rank());
      const at::Tensor mine = at::randn({size}).to(type);
      at::Tensor ours = mine.clone();
      group.AllReduce(ours, Use::kGradients);
      // Gloo 1.13 lacks bfloat16, and sums halves in half precision.
      const bool wide = type == at::kBFloat16 || (type == at::kHalf && group.size() > 2);
      at::Tensor expected = wide ? mine.to(at::kFloat) : mine.clone();
      GlooSum(group, expected);
      expected = expected.to(type);
      const std::string what = std::string(c10::toString(type)) + " x " + std::to_string(size);
      if (group.size() <= 2) {
        Expect(ours.equal(expected), what + ": bits are Gloo's");
      } else {
        const double last_place = type == at::kDouble     ? 1e-15
                                  : type == at::kFloat    ? 1e-6
                                  : type == at::kBFloat16 ? 1.6e-2
                                                          : 2e-3;
        Expect(Difference(ours, expected) <= 8 * last_place, what + ": the sum is Gloo's");
      }
      // Rank 0's bits, which all must have.
      const at::Tensor first = ours.clone().view(at::kByte);
      group.Broadcast(first, /*root=*/0, Use::kOther);
      Expect(first.equal(ours.view(at::kByte)), what + ": all ranks have the same bits");

      at::Tensor mean = mine.clone();
      group.AllReduce(mean, Use::kGradients, 1.0 / group.size());
      Expect(Difference(mean, ours.to(at::kDouble) / group.size()) <= 2e-2, what + ": mean");
    }
  }
  const auto counted = group.traffic(Use::kGradients).counted_bytes;
  Expect(counted.has_value() == Counts(group), "bytes are counted where that can be done");
  Expect(!counted || (*counted > 0) == (group.size() > 1), "they come from others");
}

// Three training steps over batches of different sizes on each rank, against one process that has
// them all. A rank without samples has no rows, or in the second step rows that do not count.
void BatchNorm(Group& group) {
  const std::array<std::int64_t, 4> sizes = {3, 5, 0, 2};  // rank 2 has none at all
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const bool affine : {true, false}) {
      const double tolerance = type == at::kDouble ? 1e-12 : 2e-5;
      const auto options = torch::nn::BatchNormOptions(6).affine(affine);
      torch::nn::BatchNorm2d whole(options);
      if (affine) {
        const at::NoGradGuard no_grad;
        whole->weight.copy_(at::linspace(0.5, 2, 6));
        whole->bias.copy_(at::linspace(-1, 1, 6));
      }
      whole->to(type);
      const auto copy = [](const at::Tensor& tensor) {
        if (!tensor.defined()) return tensor;
        return tensor.detach().clone().requires_grad_(tensor.requires_grad());
      };
      const BatchNormState mine = {copy(whole->weight), copy(whole->bias),
                                   copy(whole->running_mean), copy(whole->running_var)};
      for (int step = 0; step < 3; ++step) {
        torch::manual_seed(40 + step);
        std::int64_t total = 0;
        std::int64_t begin = 0;
        for (int rank = 0; rank < group.size(); ++rank) {
          if (rank == group.rank()) begin = total;
          total += sizes[static_cast<std::size_t>(rank)];
        }
        const std::int64_t own = sizes[static_cast<std::size_t>(group.rank())];
        // Far from 0, where a naive variance has no digits left.
        const at::Tensor all = at::randn({total, 6, 4, 3}, type) * 2 + 100;
        const at::Tensor slope = at::randn({total, 6, 4, 3}, type);
        at::Tensor x_all = all.clone().requires_grad_();
        const bool counts = own > 0 || step != 1;
        at::Tensor x = all.narrow(0, begin, own).clone().requires_grad_();
        if (!counts) x = (at::randn({2, 6, 4, 3}, type) * 9).requires_grad_();
        whole->zero_grad();
        if (affine) {
          mine.weight.mutable_grad().reset();
          mine.bias.mutable_grad().reset();
        }
        const at::Tensor y_all = whole->forward(x_all);
        const at::Tensor y =
            SyncBatchNormTraining(x, mine, *options.momentum(), options.eps(), group, counts);
        (y_all * slope).sum().backward();
        (y.narrow(0, 0, own) * slope.narrow(0, begin, own)).sum().backward();
        if (!counts) Expect(x.grad().eq(0).all().item<bool>(), "rows that do not count");
        if (own > 0) {
          Expect(Difference(y, y_all.narrow(0, begin, own)) < 50 * tolerance, "outputs");
          Expect(Difference(x.grad(), x_all.grad().narrow(0, begin, own)) < 50 * tolerance,
                 "gradients of inputs");
        }
        if (affine) {
          at::Tensor weight = mine.weight.grad().clone();
          at::Tensor bias = mine.bias.grad().clone();
          GlooSum(group, weight);
          GlooSum(group, bias);
          Expect(Difference(weight, whole->weight.grad()) < 500 * tolerance &&
                     Difference(bias, whole->bias.grad()) < 500 * tolerance,
                 "gradients of weight and bias add up to the whole batch's");
        }
        Expect(Difference(mine.running_mean, whole->running_mean) < 50 * tolerance, "mean");
        Expect(Difference(mine.running_var, whole->running_var) < 50 * tolerance, "variance");
      }
    }
  }
}

void Average(Group& group) {
  const at::Tensor first = at::full({100}, group.rank(), at::kFloat).requires_grad_();
  const at::Tensor second = at::full({3, 4}, group.rank(), at::kDouble).requires_grad_();
  const at::Tensor buffer = at::full({2}, group.rank(), at::kFloat);
  const at::Tensor count = at::full({}, group.rank(), at::kLong);
  ParameterAveraging averaging({{"first", first}, {"second", second}},
                               {{"buffer", buffer}, {"count", count}}, group, 2);
  Expect(first.eq(0).all().item<bool>() && second.eq(0).all().item<bool>() &&
             buffer.eq(0).all().item<bool>(),
         "all begin with rank 0's");
  const double mean = (group.size() - 1) / 2.0;
  for (int step = 1; step <= 4; ++step) {
    {
      const at::NoGradGuard no_grad;
      at::Tensor(first).fill_(group.rank() + step);
      at::Tensor(second).fill_(group.rank() * 2 + step);
    }
    const bool averaged = averaging.AfterStep();
    Expect(averaged == (step % 2 == 0), "every second step averages");
    const double expected = averaged ? mean : group.rank();
    Expect(Difference(first, at::full({100}, expected + step)) == 0, "the mean of floats");
    Expect(Difference(second, at::full({3, 4}, 2 * expected + step)) == 0, "of doubles");
  }
  buffer.fill_(group.rank());
  averaging.Finish();
  Expect(Difference(buffer, at::full({2}, mean)) == 0,
         "the mean of buffers, before it is looked at");
  Expect(count.eq(0).all().item<bool>(), "a count is as it was");
  Expect(Difference(first, at::full({100}, mean + 4)) == 0, "parameters were averaged already");
  at::Tensor(buffer).fill_(group.rank());
  averaging.Finish();
  Expect(Difference(buffer, at::full({2}, group.rank())) == 0, "nothing has changed since");
  const Traffic traffic = averaging.traffic();
  const std::int64_t formula =
      2 * (RingBytes(group.size(), 400) + RingBytes(group.size(), 96)) + RingBytes(group.size(), 8);
  Expect(traffic.steps == 4 && traffic.formula_bytes == formula,
         "two of four steps send, and the buffer once");
  Expect(traffic.counted_bytes.has_value() == Counts(group), "which is counted if it can be");
}

// Trains until an error; then prints it, and exits with 3.
int ForEver(Group& group) {
  const at::Tensor weight = at::ones({1000, 500}).requires_grad_();
  DistributedDataParallel ddp({{"weight", weight}}, {}, group);
  try {
    for (int step = 0;; ++step) {
      weight.mutable_grad().reset();
      ddp.Forward([&] { return weight.sum(); }).backward();
      if (step == 20) std::printf("under way\n"), std::fflush(stdout);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "failed: %s\n", error.what());
    std::fflush(stderr);
    _exit(3);  // the destructors of c10d wait for peers
  }
}

// Median microseconds of an all-reduce by Gloo and by the requested transport, in pieces of several
// sizes. Alternates between them, so that all run under the same load. Small ones are timed in
// batches: the ranks do not leave a barrier in the same microsecond.
void Bench(Group& group) {
  const std::vector<std::size_t> pieces = {256UL << 10, 1UL << 20, 4UL << 20, 32UL << 20};
  for (const std::int64_t bytes : {4L << 10, 1L << 20, 26L << 20}) {
    at::Tensor tensor = at::zeros({bytes / 4});
    std::vector<std::vector<double>> times(1 + pieces.size());
    const int count = bytes > (4 << 20) ? 21 : 51;
    const int at_once = bytes > (4 << 20) ? 1 : bytes > (64 << 10) ? 5 : 50;
    for (int i = -3; i < count; ++i) {
      for (std::size_t k = 0; k < times.size(); ++k) {
        if (k > 0) {
          group.PrepareAllReduce(static_cast<std::size_t>(bytes), {.piece_bytes = pieces[k - 1]});
          group.AllReduce(tensor, Use::kOther);  // its memory is new
        }
        group.Barrier();
        const auto start = std::chrono::steady_clock::now();
        for (int n = 0; n < at_once; ++n) {
          if (k == 0) {
            GlooSum(group, tensor);
          } else {
            group.AllReduce(tensor, Use::kOther);
          }
        }
        const std::chrono::duration<double, std::micro> time =
            std::chrono::steady_clock::now() - start;
        if (i >= 0) times[k].push_back(time.count() / at_once);
      }
    }
    if (group.rank() != 0) continue;
    std::printf("%9ld bytes", bytes);
    for (std::size_t k = 0; k < times.size(); ++k) {
      std::sort(times[k].begin(), times[k].end());
      std::printf("  %s %8.0f us", k == 0 ? "gloo" : CommName(group.comm()),
                  times[k][times[k].size() / 2]);
      if (k > 0) std::printf(" (pieces of %zu KB)", pieces[k - 1] >> 10);
    }
    std::printf("\n");
  }
}

int Main(const std::string& comm, const std::vector<std::string>& modes) {
  const Environment env = ReadEnvironment(LookupInProcess).value();
  const Comm asked = comm == "shm" ? Comm::kShm : comm == "gloo" ? Comm::kGloo : Comm::kAuto;
  auto joined = World::Join(env, asked, std::chrono::seconds(60));
  if (!joined.ok()) {
    std::fprintf(stderr, "%s\n", std::string(joined.status().message()).c_str());
    return 1;
  }
  Group& group = (*joined)->all();
  if (group.rank() == 0) std::printf("%s\n", (*joined)->why_comm().c_str());
  for (const std::string& mode : modes) {
    if (mode == "equal") {
      Equal(group);
    } else if (mode == "batch-norm") {
      BatchNorm(group);
    } else if (mode == "average") {
      Average(group);
    } else if (mode == "for-ever") {
      return ForEver(group);
    } else if (mode == "bench") {
      Bench(group);
    } else {
      Expect(false, "there is a mode " + mode);
    }
  }
  group.Barrier();
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::trainer

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  return muster::trainer::Main(argv[1], {argv + 2, argv + argc});
}
