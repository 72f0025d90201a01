// A model of your own, trained by Muster: a network that learns the heights of a landscape of
// hills. It has muster-train's flags and one more, and is started in the same way:
//
//   muster run --nproc-per-node=2 ./own_model --units=64 --epochs=5 --checkpoint-dir=hills
#include <torch/torch.h>

#include "trainer/train_main.h"

namespace mt = muster::trainer;

// Two coordinates in, one height out.
struct Hills : torch::nn::Module {
  explicit Hills(std::int64_t units)
      : inner(register_module("inner", torch::nn::Linear(2, units))),
        outer(register_module("outer", torch::nn::Linear(units, units))),
        height(register_module("height", torch::nn::Linear(units, 1))) {}

  at::Tensor Forward(const at::Tensor& places) {
    return height(torch::tanh(outer(torch::tanh(inner(places)))));
  }

  torch::nn::Linear inner, outer, height;
};

// Measured places: sample i is always the same, whichever rank, thread or batch asks for it.
class Survey : public mt::Dataset {
 public:
  Survey(std::int64_t first, std::int64_t count) : first_(first), count_(count) {}

  std::int64_t size() const override { return count_; }
  mt::DataShape shape() const override { return {.kind = mt::DataShape::Kind::kSamples}; }
  mt::Batch Gather(const std::vector<std::int64_t>& indices, std::int64_t /*epoch*/,
                   bool /*train*/) const override {
    const auto samples = static_cast<std::int64_t>(indices.size());
    mt::Batch batch{at::empty({samples, 2}), at::empty({samples, 1})};
    for (std::int64_t row = 0; row < samples; ++row) {
      // Spread evenly over a square by the golden ratio's two-dimensional relative.
      const auto i = static_cast<double>(first_ + indices.at(static_cast<std::size_t>(row)));
      const double x = 2 * std::fmod(0.7548776662 * i, 1) - 1;
      const double y = 2 * std::fmod(0.5698402910 * i, 1) - 1;
      batch.inputs[row][0] = x;
      batch.inputs[row][1] = y;
      batch.targets[row][0] = std::sin(3 * x) * std::cos(2 * y);
    }
    return batch;
  }

 private:
  const std::int64_t first_;
  const std::int64_t count_;
};

int main(int argc, char** argv) {
  std::int64_t units = 32;
  const mt::Recipe recipe{
      .name = "hills",
      .data = [](const mt::DataOptions&) -> absl::StatusOr<mt::Splits> {
        return mt::Splits{std::make_shared<Survey>(0, 4096), std::make_shared<Survey>(4096, 512)};
      },
      .model = [&units](const mt::DataShape&) -> absl::StatusOr<mt::Network> {
        const auto hills = std::make_shared<Hills>(units);
        return mt::Network{.module = hills, .stages = {{"hills", [hills](const at::Tensor& places) {
                                                          return hills->Forward(places);
                                                        }}}};
      },
      .loss = [](const at::Tensor& heights,
                 const at::Tensor& measured) { return (heights - measured).square().sum(); },
      .metrics = {{"within 0.1",
                   [](const at::Tensor& heights, const at::Tensor& measured) {
                     return (heights - measured).abs().lt(0.1).sum();
                   }}},
      .flags =
          [&units](mt::FlagSet& flags) {
            flags.Number("--units", units, 1, 4096, "Units of each hidden layer");
          }};
  return mt::TrainMain(argc, argv, recipe);
}
