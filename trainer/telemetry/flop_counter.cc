#include "trainer/telemetry/flop_counter.h"

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace muster::trainer {
namespace {

std::atomic<std::int64_t> g_flops = 0;

using Inputs = c10::ArrayRef<const c10::IValue>;

// The sizes of an argument that may be anything; empty when it is no tensor.
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

// `outputs`: N x C x places. `weight`: C x channels of a group x places of the kernel.
std::int64_t OfConvolution(at::IntArrayRef outputs, at::IntArrayRef weight) {
  return outputs.empty() || weight.empty() ? 0 : 2 * Product(outputs) * Product(weight.slice(1));
}

// What the convolution's outputs are follows from its arguments: input, weight, bias, stride,
// padding, dilation, transposed.
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
// padding, groups; and which gradients are wanted, of which that of the bias is only a sum.
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

// Five products where the way there has two.
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

}  // namespace muster::trainer
