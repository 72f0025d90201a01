#include "trainer/runtime/flop_counter.h"

#include <atomic>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

namespace muster::trainer {
namespace {

std::atomic<std::int64_t> g_flops = 0;

using Inputs = c10::ArrayRef<const c10::IValue>;

// The sizes of an argument of any type; empty if it is not a tensor.
at::IntArrayRef SizesOf(const Inputs& inputs, std::size_t place) {
  if (place >= inputs.size() || !inputs[place].isTensor()) return {};
  const at::Tensor& tensor = inputs[place].toTensor();
  return tensor.defined() ? tensor.sizes() : at::IntArrayRef();
}

std::int64_t Product(at::IntArrayRef sizes) {
  return c10::multiply_integers(sizes);
}

// M x K by K x N, or B of them.
std::int64_t OfProduct(const Inputs& inputs, std::size_t first) {
  const at::IntArrayRef a = SizesOf(inputs, first);
  const at::IntArrayRef b = SizesOf(inputs, first + 1);
  return a.empty() || b.empty() ? 0 : 2 * Product(a) * b.back();
}

// `outputs`: N x C x positions. `weight`: C x channels of a group x positions of the kernel.
std::int64_t OfConvolution(at::IntArrayRef outputs, at::IntArrayRef weight) {
  return outputs.empty() || weight.empty() ? 0 : 2 * Product(outputs) * Product(weight.slice(1));
}

// Computes the output sizes from the arguments: input, weight, bias, stride, padding, dilation,
// transposed.
std::int64_t OfForwardConvolution(const Inputs& inputs) {
  const at::IntArrayRef input = SizesOf(inputs, 0);
  const at::IntArrayRef weight = SizesOf(inputs, 1);
  if (input.size() < 3 || inputs.size() < 7) return 0;
  if (inputs[6].toBool()) return OfConvolution(input, weight);
  const auto stride = inputs[3].toIntVector();
  const auto padding = inputs[4].toIntVector();
  const auto dilation = inputs[5].toIntVector();
  std::vector<std::int64_t> outputs = {input[0], weight[0]};
  for (std::size_t i = 0; i + 2 < input.size(); ++i) {
    const auto of = [i](const auto& values) { return values[values.size() == 1 ? 0 : i]; };
    outputs.push_back(
        (input[i + 2] + 2 * of(padding) - of(dilation) * (weight[i + 2] - 1) - 1) / of(stride) + 1);
  }
  return OfConvolution(outputs, weight);
}

// Gradient of outputs, input, weight, bias' sizes, stride, padding, dilation, transposed, output
// padding, groups; and which gradients are required, of which the bias's is only a sum.
std::int64_t OfBackwardConvolution(const Inputs& inputs) {
  if (inputs.size() < 11) return 0;
  const auto wanted = inputs[10].toBoolList();
  const bool transposed = inputs[7].toBool();
  return ((wanted.get(0) ? 1 : 0) + (wanted.get(1) ? 1 : 0)) *
         OfConvolution(SizesOf(inputs, transposed ? 1 : 0), SizesOf(inputs, 2));
}

// Queries, keys and values: B x heads x positions x width.
std::int64_t OfAttention(const Inputs& inputs, std::size_t first) {
  const at::IntArrayRef queries = SizesOf(inputs, first);
  const at::IntArrayRef keys = SizesOf(inputs, first + 1);
  const at::IntArrayRef values = SizesOf(inputs, first + 2);
  if (queries.size() != 4 || keys.size() != 4 || values.size() != 4) return 0;
  return 2 * queries[0] * queries[1] * queries[2] * keys[2] * (queries[3] + values[3]);
}

// Five products where the forward pass has two.
std::int64_t OfBackwardAttention(const Inputs& inputs) {
  return OfAttention(inputs, 1) / 2 * 5;
}

using Formula = std::int64_t (*)(const Inputs& inputs);
const std::unordered_map<std::string_view, Formula>& Formulas() {
  static const auto* const formulas = new std::unordered_map<std::string_view, Formula>{
      {"aten::mm", [](const Inputs& inputs) { return OfProduct(inputs, 0); }},
      {"aten::bmm", [](const Inputs& inputs) { return OfProduct(inputs, 0); }},
      {"aten::addmm", [](const Inputs& inputs) { return OfProduct(inputs, 1); }},
      {"aten::baddbmm", [](const Inputs& inputs) { return OfProduct(inputs, 1); }},
      {"aten::convolution", OfForwardConvolution},
      {"aten::convolution_backward", OfBackwardConvolution},
      {"aten::_scaled_dot_product_flash_attention",
       [](const Inputs& inputs) { return OfAttention(inputs, 0); }},
      {"aten::_scaled_dot_product_flash_attention_for_cpu",
       [](const Inputs& inputs) { return OfAttention(inputs, 0); }},
      {"aten::_scaled_dot_product_efficient_attention",
       [](const Inputs& inputs) { return OfAttention(inputs, 0); }},
      {"aten::_scaled_dot_product_cudnn_attention",
       [](const Inputs& inputs) { return OfAttention(inputs, 0); }},
      {"aten::_scaled_dot_product_flash_attention_backward", OfBackwardAttention},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", OfBackwardAttention},
      {"aten::_scaled_dot_product_efficient_attention_backward", OfBackwardAttention},
      {"aten::_scaled_dot_product_cudnn_attention_backward", OfBackwardAttention}};
  return *formulas;
}

std::unique_ptr<at::ObserverContext> OnStart(const at::RecordFunction& function) {
  const auto formula = Formulas().find(function.name());
  if (formula != Formulas().end()) g_flops += formula->second(function.inputs());
  return nullptr;
}

}  // namespace

FlopCounter::FlopCounter() {
  g_flops = 0;
  handle_ = at::addGlobalCallback(
      at::RecordFunctionCallback(OnStart).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
}

FlopCounter::~FlopCounter() {
  at::removeCallback(handle_);
}

std::int64_t FlopCounter::flops() const {
  return g_flops;
}

namespace {

// In 10^12; 0: not supported. From NVIDIA's data sheets, without sparsity, with tensor cores if
// available.
struct Peak {
  std::string_view name;  // a part of it
  double half;
  double tf32;
  double single;
  double twice;  // float64
};

// The first match counts.
constexpr Peak kPeaks[] = {{"H200", 989.5, 494.7, 66.9, 66.9}, {"H100 PCIe", 756, 378, 51, 51},
                           {"H100", 989.5, 494.7, 66.9, 66.9}, {"A100", 312, 156, 19.5, 19.5},
                           {"L40S", 362, 183, 91.6, 1.4},      {"L4", 121, 60, 30.3, 0.5},
                           {"A10", 125, 62.5, 31.2, 0.5},      {"V100-SXM2", 125, 0, 15.7, 7.8},
                           {"Tesla T4", 65, 0, 8.1, 0.25}};

}  // namespace

const char* MultipliesName(Multiplies kind) {
  switch (kind) {
    case Multiplies::kHalf:
      return "bfloat16 or float16";
    case Multiplies::kTf32:
      return "TensorFloat-32";
    case Multiplies::kFloat:
      return "float32";
    case Multiplies::kDouble:
      return "float64";
  }
  return "";
}

std::optional<double> PeakFlops(std::string_view name, Multiplies kind) {
  for (const Peak& peak : kPeaks) {
    const std::size_t place = name.find(peak.name);
    if (place == std::string_view::npos) continue;
    // Not a prefix of another name.
    const std::size_t end = place + peak.name.size();
    if (end < name.size() && name[end] != ' ' && name[end] != '-') continue;
    const double trillions = kind == Multiplies::kHalf    ? peak.half
                             : kind == Multiplies::kTf32  ? peak.tf32
                             : kind == Multiplies::kFloat ? peak.single
                                                          : peak.twice;
    return trillions > 0 ? std::optional(trillions * 1e12) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace muster::trainer
