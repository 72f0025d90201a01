// One rank of recompute_test: two DistributedDataParallel models with dropout, one of which
// recomputes activations. Exits with 0 if their gradients are bitwise equal; prints which are not.
#include <cstdio>
#include <memory>

#include <ATen/ops/randn.h>
#include <torch/utils.h>

#include "test/trainer/models/dropping_network.h"
#include "trainer/comm/world.h"
#include "trainer/compat/torch_compat.h"
#include "trainer/models/model.h"
#include "trainer/parallel/ddp.h"
#include "trainer/worker/launcher_link.h"

namespace muster::trainer {
namespace {

constexpr DataShape kRows = {.kind = DataShape::Kind::kSamples, .classes = 10};
constexpr std::int64_t kWidth = 24;

struct Trained {
  Trained(bool recompute, Group& group)
      : model(MakeModel(DroppingRecipe(4, kWidth), kRows, {.recompute = recompute}).value()),
        // Small buckets, so that several are sent during the backward pass.
        ddp(model->Parameters(), model->Buffers(), group,
            {.bucket_cap_mb = 0.01, .first_bucket_mb = 0.001}) {}

  // Two micro-batches, of which the first is not reduced.
  void Accumulate(std::int64_t step, std::int64_t rank, const at::Tensor& rows) {
    for (const NamedTensor& one : model->Parameters()) one.tensor.mutable_grad().reset();
    for (std::int64_t i = 0; i < 2; ++i) {
      const auto forward = [&] {
        return model->ForwardAt({.step = step, .micro_batch = i, .data_rank = rank}, rows[i]);
      };
      const auto run = [&] { ddp.Forward(forward).square().mean().backward(); };
      if (i == 0) {
        const auto guard = ddp.NoSync();
        run();
      } else {
        run();
      }
    }
  }

  const std::unique_ptr<Model> model;
  DistributedDataParallel ddp;
};

int Main() {
  const Environment env = ReadEnvironment(LookupInProcess).value();
  const auto world = World::Join(env, Comm::kGloo, std::chrono::seconds(60)).value();
  Trained kept(false, world->all());
  Trained again(true, world->all());
  int failures = 0;
  for (int step = 0; step < 4; ++step) {
    torch::manual_seed(10 * step + env.rank);
    const at::Tensor rows = at::randn({2, 16, kWidth});
    kept.Accumulate(step, env.rank, rows);
    again.Accumulate(step, env.rank, rows);
    const std::vector<NamedTensor> expected = kept.model->Parameters();
    const std::vector<NamedTensor> got = again.model->Parameters();
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (got[i].tensor.grad().equal(expected[i].tensor.grad())) continue;
      std::fprintf(stderr, "step %d: the gradient of %s differs\n", step, got[i].name.c_str());
      ++failures;
    }
  }
  world->all().Barrier();
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::trainer

int main() {
  return muster::trainer::Main();
}
