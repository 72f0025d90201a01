// One rank of ddp_test: trains a small network with DistributedDataParallel, and the same network
// on the whole batch without it. Exits with 0 if they agree; prints differences to stderr.
#include <cstdio>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tanh.h>
#include <torch/utils.h>

#include "trainer/comm/world.h"
#include "trainer/compat/torch_compat.h"
#include "trainer/parallel/ddp.h"
#include "trainer/worker/launcher_link.h"

namespace muster::trainer {
namespace {

constexpr int kSteps = 5;
constexpr std::int64_t kRankBatch = 16;
constexpr double kTolerance = 1e-6;

int failures = 0;

void Expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  ++failures;
}

double Difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

std::vector<NamedTensor> MakeParameters(std::uint64_t seed) {
  torch::manual_seed(seed);
  const auto make = [](at::IntArrayRef sizes) { return at::randn(sizes).requires_grad_(); };
  return {{"w1", make({20, 30})}, {"b1", make({30})}, {"w2", make({30, 5})}};
}

at::Tensor Loss(const std::vector<NamedTensor>& p, const at::Tensor& x, const at::Tensor& y) {
  const at::Tensor hidden = at::tanh(at::matmul(x, p[0].tensor) + p[1].tensor);
  return at::mse_loss(at::matmul(hidden, p[2].tensor), y);
}

void Step(const std::vector<NamedTensor>& parameters) {
  const at::NoGradGuard no_grad;
  for (const NamedTensor& parameter : parameters) {
    at::Tensor tensor = parameter.tensor;
    tensor.sub_(tensor.grad(), 0.1);
    tensor.mutable_grad().reset();
  }
}

int Main() {
  const Environment env = ReadEnvironment(LookupInProcess).value();
  const auto world = World::Join(env, Comm::kGloo, std::chrono::seconds(60)).value();
  Group& group = world->all();

  const std::vector<double> sums = group.Sum({double(env.rank), 0.5});
  Expect(sums == std::vector<double>(
                     {env.world_size * (env.world_size - 1) / 2.0, 0.5 * env.world_size}),
         "Sum() is not the sum over the ranks");

  // Each rank starts with different values; DDP must replace them by rank 0's.
  const std::vector<NamedTensor> mine = MakeParameters(100 + env.rank);
  const std::vector<NamedTensor> whole = MakeParameters(100);
  const NamedTensor buffer = {"mean", at::full({3}, double(env.rank + 7))};
  DistributedDataParallel ddp(mine, {buffer}, group);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    Expect(Difference(mine[i].tensor, whole[i].tensor) == 0, "parameters are not rank 0's");
  }
  Expect(Difference(buffer.tensor, at::full({3}, 7.0)) == 0, "the buffer is not rank 0's");

  for (int step = 0; step < kSteps; ++step) {
    torch::manual_seed(step);  // the same batch on every rank
    const at::Tensor x = at::randn({kRankBatch * env.world_size, 20});
    const at::Tensor y = at::randn({kRankBatch * env.world_size, 5});
    const auto part = [&](const at::Tensor& t) {
      return t.narrow(0, env.rank * kRankBatch, kRankBatch);
    };
    buffer.tensor.fill_(env.rank + step);
    ddp.Forward([&] { return Loss(mine, part(x), part(y)); }).backward();
    Loss(whole, x, y).backward();
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const double scale = whole[i].tensor.grad().abs().max().item<double>();
      Expect(scale > 0 && Difference(mine[i].tensor.grad(), whole[i].tensor.grad()) <
                              kTolerance * std::max(1.0, scale),
             "gradients are not those of the whole batch");
    }
    Expect(Difference(buffer.tensor, at::full({3}, double(step))) == 0,
           "the buffer is not rank 0's before a forward pass");
    Step(mine);
    Step(whole);
  }

  {
    const at::NoGradGuard no_grad;
    const at::Tensor ones = at::ones({2});
    Expect(ddp.Forward([&] { return ones; }).equal(ones), "evaluation changes the output");
  }
  group.Barrier();
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::trainer

int main() {
  return muster::trainer::Main();
}
