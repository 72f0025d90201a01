// How the activations look that one part of a pipeline sends to the next.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace muster::trainer {

// What a receiver has to know of a tensor before it comes.
struct ActivationLayout {
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> sizes;
  // Images with their channels innermost travel and arrive as such: convolutions are faster then.
  bool channels_last = false;
};

ActivationLayout LayoutOf(const at::Tensor& tensor);

// "2 x 16 x 64 Float".
std::string Described(const ActivationLayout& layout);

// A tensor of that layout, whose elements have any values.
at::Tensor EmptyOf(const ActivationLayout& layout, const at::Device& device);

// The elements of `tensor`, which has the type and sizes of `layout`, contiguous and in the order
// in which `layout` has them in memory. Shares memory with `tensor` unless that is laid out in
// another way.
at::Tensor ElementsOf(const at::Tensor& tensor, const ActivationLayout& layout);

// A layout as a message: kHeaderNumbers whole numbers, on the CPU. Throws std::invalid_argument
// with one sentence when it has more than 12 dimensions.
inline constexpr std::int64_t kHeaderNumbers = 15;
at::Tensor HeaderOf(const ActivationLayout& layout);
ActivationLayout ReadHeader(const at::Tensor& header);

// The layouts that a rank knows, by what decides about them. Both sides of a message must agree on
// whether they know its layout, so what a step finds out is kept until Settle().
class ActivationLayouts {
 public:
  // What is computed from inputs of `input_sizes`, in training or not, by the part `part`.
  struct Key {
    bool training = true;
    int part = 0;
    std::vector<std::int64_t> input_sizes;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  // Null when it was not known at the last Settle(). Valid until the next.
  const ActivationLayout* Find(const Key& key) const;
  void Learn(Key key, ActivationLayout layout) { learned_[std::move(key)] = std::move(layout); }
  // At the end of a step. Forgets everything once it knows very much.
  void Settle();

 private:
  std::map<Key, ActivationLayout> known_;
  std::map<Key, ActivationLayout> learned_;
};

}  // namespace muster::trainer
