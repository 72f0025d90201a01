// Compares DataParallel with one model that sees the whole batch.
#include "trainer/parallel/data_parallel.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tanh.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "trainer/comm/host/operation_log.h"

namespace muster::trainer {
namespace {

DataParallel::Replica MakeReplica(double fill) {
  DataParallel::Replica replica;
  const auto make = [&](std::vector<std::int64_t> sizes) {
    return at::full(sizes, fill, at::kDouble).set_requires_grad(true);
  };
  replica.parameters = {{"w", make({7, 5})}, {"b", make({5})}};
  replica.buffers = {{"offset", at::full({5}, fill, at::kDouble)}};
  return replica;
}

// The sum over the places divided by `batch`, so that chunks add up to the mean over the batch.
at::Tensor Loss(const DataParallel::Replica& replica, const at::Tensor& x, std::int64_t batch) {
  const at::Tensor out = at::tanh(at::matmul(x, replica.parameters[0].tensor) +
                                  replica.parameters[1].tensor + replica.buffers[0].tensor);
  return out.square().sum() / batch;
}

TEST(DataParallelTest, GradientsAndLossAreThoseOfTheWholeBatch) {
  for (const int count : {1, 2, 3, 4}) {
    std::vector<DataParallel::Replica> replicas;
    for (int i = 0; i < count; ++i) replicas.push_back(MakeReplica(0.1 * (i + 1)));
    DataParallel parallel(replicas);
    const DataParallel::Replica whole = MakeReplica(0.1);
    const std::int64_t bytes = 8 * (35 + 5);
    int steps = 0;
    for (const std::int64_t batch : {12, 10, 2}) {  // even, uneven, fewer than replicas
      const at::Tensor x = at::randn({batch, 7}, at::kDouble);
      const double loss =
          parallel.ForwardBackward(batch, [&](int replica, std::int64_t begin, std::int64_t end) {
            return Loss(replicas[static_cast<std::size_t>(replica)], x.slice(0, begin, end), batch);
          });
      const at::Tensor expected = Loss(whole, x, batch);
      expected.backward();
      EXPECT_NEAR(loss, expected.item<double>(), 1e-12);
      for (std::size_t i = 0; i < 2; ++i) {
        at::Tensor& gradient = replicas[0].parameters[i].tensor.mutable_grad();
        at::Tensor& right = whole.parameters[i].tensor.mutable_grad();
        EXPECT_TRUE(at::allclose(gradient, right, 1e-12, 1e-14)) << count << " replicas";
        at::Tensor(whole.parameters[i].tensor).detach().sub_(right, 0.1);
        at::Tensor(replicas[0].parameters[i].tensor).detach().sub_(gradient, 0.1);
        gradient.reset();
        right.reset();
      }
      ++steps;
    }
    EXPECT_EQ(parallel.traffic().steps, steps);
    EXPECT_EQ(parallel.traffic().formula_bytes, steps * CentralBytes(count, bytes));
    // The last batch left replicas idle, whose gradients need not move.
    const std::int64_t idle = count > 2 ? count - 2 : 0;
    EXPECT_EQ(parallel.traffic().counted_bytes, steps * CentralBytes(count, bytes) - idle * bytes);
  }
}

TEST(DataParallelTest, AnErrorOfAThreadComesToTheCaller) {
  DataParallel parallel({MakeReplica(1), MakeReplica(1)});
  EXPECT_THROW(parallel.ForwardBackward(2,
                                        [](int replica, std::int64_t, std::int64_t) {
                                          if (replica == 1) throw std::out_of_range("no data");
                                          return at::ones({}).set_requires_grad(true) * 1;
                                        }),
               std::out_of_range);
}

}  // namespace
}  // namespace muster::trainer
