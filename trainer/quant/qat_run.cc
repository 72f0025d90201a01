#include "trainer/quant/qat_run.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/native/quantized/PackedParams.h>
#include <ATen/ops/quantize_per_channel.h>
#include <ATen/ops/quantize_per_tensor.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"

#include "trainer/quant/qat_layer.h"
#include "trainer/worker/timing.h"

namespace muster::trainer {
namespace {

using PackedLinear = c10::intrusive_ptr<LinearPackedParamsBase>;
using PackedConvolution = c10::intrusive_ptr<ConvPackedParamsBase<2>>;
using Sizes = c10::List<std::int64_t>;

template <typename Signature>
auto Operator(const char* name, const char* overload = "") {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).typed<Signature>();
}

// Chooses the engine for which weights are packed. oneDNN's layers take activations from 0 to 255;
// others would need half of that range.
void ChooseEngine() {
  if (absl::c_linear_search(at::globalContext().supportedQEngines(), at::QEngine::ONEDNN)) {
    at::globalContext().setQEngine(at::QEngine::ONEDNN);
  }
}

Sizes ListOf(at::IntArrayRef sizes) {
  Sizes list;
  for (const std::int64_t size : sizes) list.push_back(size);
  return list;
}

c10::optional<at::Tensor> BiasOf(const QatLayer& layer) {
  const at::Tensor bias = layer.FoldedBias();
  if (!bias.defined()) return c10::nullopt;
  return bias;
}

at::Tensor Int8Weight(const QatLayer& layer) {
  const WeightFakeQuantize& rounding = *layer.weight_rounding;
  return at::quantize_per_channel(layer.FoldedWeight().contiguous(),
                                  rounding.scale().to(at::kDouble),
                                  rounding.zero_point().to(at::kLong), /*axis=*/0, at::kQInt8);
}

PackedConvolution PackConvolution(const QatLayer& layer) {
  const auto& options = layer.convolution->options;
  return Operator<PackedConvolution(at::Tensor, c10::optional<at::Tensor>, Sizes, Sizes, Sizes,
                                    std::int64_t)>("quantized::conv2d_prepack")
      .call(Int8Weight(layer), BiasOf(layer), ListOf(options.stride()), ListOf(*PaddingOf(options)),
            ListOf(options.dilation()), options.groups());
}

}  // namespace

// One of the three, or none: Flatten.
struct Int8Network::Layer {
  PackedLinear linear;
  PackedConvolution convolution;
  std::shared_ptr<torch::nn::AdaptiveAvgPool2dImpl> average;
  std::vector<std::shared_ptr<torch::nn::MaxPool2dImpl>> pools;
  bool relu = false;
  double scale = 1;
  std::int64_t zero_point = 0;

  explicit Layer(const QatLayer& layer)
      : average(layer.average), pools(layer.pools), relu(layer.relu) {
    if (!layer.output_rounding) return;
    if (layer.linear) {
      linear =
          Operator<PackedLinear(at::Tensor, c10::optional<at::Tensor>)>("quantized::linear_prepack")
              .call(Int8Weight(layer), BiasOf(layer));
    } else {
      convolution = PackConvolution(layer);
    }
    scale = layer.output_rounding->scale().item<double>();
    zero_point = layer.output_rounding->zero_point().item<std::int64_t>();
  }

  at::Tensor Run(const at::Tensor& x) const {
    if (linear) {
      return Operator<at::Tensor(at::Tensor, const PackedLinear&, double, std::int64_t)>(
                 relu ? "quantized::linear_relu" : "quantized::linear")
          .call(x, linear, scale, zero_point);
    }
    if (average) return average->forward(x);
    if (!convolution) return x.flatten(1);
    at::Tensor y = Operator<at::Tensor(at::Tensor, const PackedConvolution&, double, std::int64_t)>(
                       relu ? "quantized::conv2d_relu" : "quantized::conv2d", "new")
                       .call(x, convolution, scale, zero_point);
    for (const auto& pool : pools) y = pool->forward(y);
    return y;
  }
};

struct Int8Network::Block {
  std::vector<Layer> body;
  std::vector<Layer> shortcut;
  bool adds = false;
  double scale = 1;
  std::int64_t zero_point = 0;

  explicit Block(const QatBlock& block)
      : body(block.body.begin(), block.body.end()),
        shortcut(block.shortcut.begin(), block.shortcut.end()),
        adds(block.sum_rounding != nullptr) {
    if (!adds) return;
    scale = block.sum_rounding->scale().item<double>();
    zero_point = block.sum_rounding->zero_point().item<std::int64_t>();
  }

  at::Tensor Run(const at::Tensor& inputs) const {
    at::Tensor x = inputs;
    for (const Layer& layer : body) x = layer.Run(x);
    if (!adds) return x;
    at::Tensor other = inputs;
    for (const Layer& layer : shortcut) other = layer.Run(other);
    return Operator<at::Tensor(at::Tensor, at::Tensor, double, std::int64_t)>("quantized::add_relu")
        .call(x, other, scale, zero_point);
  }
};

Int8Network::Int8Network(const QatNetwork& network)
    : scale_(network.input_rounding().scale().item<double>()),
      zero_point_(network.input_rounding().zero_point().item<std::int64_t>()) {
  const at::NoGradGuard no_grad;
  ChooseEngine();
  for (const QatBlock& block : network.blocks()) blocks_.emplace_back(block);
}

Int8Network::~Int8Network() = default;

at::Tensor Int8Network::Forward(const at::Tensor& inputs) const {
  const at::NoGradGuard no_grad;
  at::Tensor x = at::quantize_per_tensor(inputs, scale_, zero_point_, at::kQUInt8);
  for (const Block& block : blocks_) x = block.Run(x);
  return x.dequantize();
}

double Int8Network::output_step() const {
  double step = scale_;
  for (const Block& block : blocks_) {
    for (const Layer& layer : block.body) {
      if (layer.linear || layer.convolution) step = layer.scale;
    }
    if (block.adds) step = block.scale;
  }
  return step;
}

namespace {

constexpr std::int64_t kSamples = 256;
constexpr std::size_t kTimes = 31;
constexpr std::chrono::seconds kEnough(1);

std::shared_ptr<QatNetwork> NetworkIn(const std::shared_ptr<torch::nn::Module>& module) {
  auto network = std::dynamic_pointer_cast<QatNetwork>(module);
  if (!network) throw std::invalid_argument("the model is not prepared for --qat");
  return network;
}

// The median of several runs, in milliseconds: as many as time permits.
template <typename Function>
double MedianMs(const Function& function) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  const Clock::time_point first = Clock::now();
  do {
    const Clock::time_point start = Clock::now();
    function();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  } while (times.size() < kTimes && Clock::now() - first < kEnough);
  if (times.size() > 1) times.erase(times.begin());  // the first one is slower than the rest
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

QatRun::QatRun(std::shared_ptr<torch::nn::Module> module, const QatOptions& options,
               std::int64_t epochs, Group& group)
    : network_(NetworkIn(module)), options_(options), epochs_(epochs), group_(group) {}

QatPhase QatRun::PhaseOf(std::int64_t epoch) const {
  if (epoch < options_.observe_epochs) return QatPhase::kObserve;
  return epoch < options_.FreezeEpoch(epochs_) ? QatPhase::kRound : QatPhase::kFrozen;
}

void QatRun::BeginEpoch(std::int64_t epoch) {
  phase_ = PhaseOf(epoch);
  network_->SetPhase(phase_);
}

void QatRun::AfterStep(bool counts) {
  if (phase_ == QatPhase::kFrozen) return;
  const at::NoGradGuard no_grad;
  // One exchange for all: the greatest value is the least of the negatives.
  std::vector<at::Tensor> ends;
  for (const auto& one : network_->activations()) {
    ends.push_back(one->min_val());
    ends.push_back(one->max_val().neg());
  }
  std::vector<at::Tensor> all = {at::stack(ends)};
  if (!counts) all[0].fill_(std::numeric_limits<double>::infinity());
  if (group_.size() > 1) {
    c10d::AllreduceOptions least;
    least.reduceOp = c10d::ReduceOp::MIN;
    const WaitScope waits;
    group_.Backend(Use::kOther)->allreduce(all, least)->wait();
  }
  // A single process does this, too: while nothing is rounded, LibTorch's operator derives no
  // scale.
  std::int64_t next = 0;
  for (const auto& one : network_->activations()) {
    one->SetRange(all[0][next], all[0][next + 1].neg());
    next += 2;
  }
}

std::unique_ptr<Int8Network> QatRun::Convert() const {
  return network_->observed() ? std::make_unique<Int8Network>(*network_) : nullptr;
}

std::string CompareInference(QatNetwork& network, const Int8Network& int8,
                             const std::vector<std::int64_t>& sample) {
  const at::NoGradGuard no_grad;
  std::vector<std::int64_t> sizes = sample;
  sizes.insert(sizes.begin(), kSamples);
  const at::Tensor inputs = at::rand(sizes, at::kFloat);
  const double float_ms = MedianMs([&] { network.FloatForward(inputs); });
  const double int8_ms = MedianMs([&] { int8.Forward(inputs); });
  return absl::StrFormat(
      "int8: weights of %d bytes instead of %d; %d samples in %.3f ms instead of %.3f",
      network.int8_bytes(), network.float_bytes(), kSamples, int8_ms, float_ms);
}

}  // namespace muster::trainer
