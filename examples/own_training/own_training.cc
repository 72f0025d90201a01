// Where muster-train's flags are not enough: batches of more than two tensors, batch normalization
// over all ranks, groups of parameters, an optimizer and a schedule of your own. What it learns are
// hills again (examples/own_model), from measurements of which some are surer than others:
//
//   muster run --nproc-per-node=2 ./own_training --sync-bn --epochs=5 --checkpoint-dir=hills
#include <torch/torch.h>

#include "trainer/models/batch_norm_layer.h"
#include "trainer/train_main.h"

namespace mt = muster::trainer;

using Others = std::vector<at::Tensor>;

// Batch normalization takes a bias away again.
torch::nn::Linear WithoutBias(std::int64_t inputs) {
  return torch::nn::Linear(torch::nn::LinearOptions(inputs, 32).bias(false));
}

// Two coordinates and the season in, one height out.
struct Hills : torch::nn::Module {
  explicit Hills(const std::shared_ptr<mt::BatchNormFunction>& norm_function)
      : places(register_module("places", WithoutBias(2))),
        season(register_module("season", WithoutBias(1))),
        norm(register_module("norm", std::make_shared<mt::BatchNorm>(32, norm_function))),
        height(register_module("height", torch::nn::Linear(32, 1))) {}

  at::Tensor Forward(const at::Tensor& at_places, const at::Tensor& in_season) {
    return height(torch::tanh(norm->Forward(places(at_places) + season(in_season))));
  }

  torch::nn::Linear places, season;
  std::shared_ptr<mt::BatchNorm> norm;
  torch::nn::Linear height;
};

// A batch has four tensors: places and heights, and besides these seasons and weights.
class Survey : public mt::Dataset {
 public:
  Survey(std::int64_t first, std::int64_t count) : first_(first), count_(count) {}

  std::int64_t size() const override { return count_; }
  mt::DataShape shape() const override { return {.kind = mt::DataShape::Kind::kSamples}; }
  mt::Batch Gather(const std::vector<std::int64_t>& indices, std::int64_t /*epoch*/,
                   bool /*train*/) const override {
    const at::Tensor i = at::tensor(indices).to(at::kDouble).add(first_).unsqueeze(1);
    const at::Tensor x = i.mul(0.7548776662).frac().mul(2).sub(1);
    const at::Tensor y = i.mul(0.5698402910).frac().mul(2).sub(1);
    const at::Tensor season = i.remainder(4).div(4);
    mt::Batch batch{at::cat({x, y}, 1).to(at::kFloat),
                    (x.mul(3).sin() * y.mul(2).cos() + season).to(at::kFloat)};
    batch.others = {season.to(at::kFloat), i.remainder(2).add(0.5).to(at::kFloat)};
    return batch;
  }

 private:
  const std::int64_t first_;
  const std::int64_t count_;
};

// Lion (Chen et al., 2023): steps of one size, in the direction of a moving average.
mt::UpdateRule Lion() {
  return {.name = "lion",
          .kept = {"exp_avg"},
          .lr = 0.01,
          .update = [](const at::Tensor& parameter, const at::Tensor& gradient, const Others& kept,
                       const mt::UpdateStep& step) {
            const at::Tensor direction = kept[0].mul(0.9).add(gradient, 0.1).sign_();
            parameter.mul_(1 - step.lr * step.weight_decay).add_(direction, -step.lr);
            kept[0].mul_(0.99).add_(gradient, 0.01);
          }};
}

int main(int argc, char** argv) {
  mt::Recipe recipe{.name = "hills"};
  recipe.data = [](const mt::DataOptions&) -> absl::StatusOr<mt::Splits> {
    return mt::Splits{std::make_shared<Survey>(0, 4000), std::make_shared<Survey>(4000, 500)};
  };
  recipe.model = [](const mt::DataShape&) -> absl::StatusOr<mt::Network> {
    const auto norm_function = std::make_shared<mt::BatchNormFunction>(mt::LocalBatchNorm);
    const auto others = std::make_shared<Others>();  // before each pass those of its batch
    const auto hills = std::make_shared<Hills>(norm_function);
    return mt::Network{.module = hills,
                       .stages = {{"hills",
                                   [hills, others](const at::Tensor& places) {
                                     return hills->Forward(places, others->at(0));
                                   },
                                   {"places", "season", "norm", "height"}}},
                       .batch_norm = norm_function,
                       .others = others,
                       .draws_random_numbers = false};
  };
  recipe.loss_with = [](const at::Tensor& heights, const at::Tensor& measured,
                        const Others& others) {
    return ((heights - measured).square() * others[1]).sum();
  };
  recipe.metrics = {{"within 0.1", [](const at::Tensor& heights, const at::Tensor& measured) {
                       return (heights - measured).abs().lt(0.1).sum();
                     }}};
  // The last layer learns more slowly, and biases do not decay.
  recipe.updates.settings_of = [](const std::string& parameter) {
    mt::ParameterSettings settings;
    if (parameter.starts_with("height.")) settings.lr_scale = 0.5;
    if (parameter.ends_with(".bias")) settings.weight_decay = 0;
    return settings;
  };
  recipe.updates.rule = Lion();
  recipe.updates.schedule = [](std::int64_t step, std::int64_t steps) {
    return 1 - static_cast<double>(step) / static_cast<double>(steps);
  };
  return mt::TrainMain(argc, argv, recipe);
}
