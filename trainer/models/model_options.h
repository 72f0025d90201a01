// Which network to make, and how large.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "trainer/data/data_shape.h"

namespace muster::trainer {

enum class ModelKind {
  kCnn,  // two 3 x 3 convolutions (16 and 32 channels), each halved by max-pooling, then 128 hidden
         // units
  kMlp,  // hidden layers of the widths in `hidden`
  kResNet18,  // torchvision's resnet18
  kGpt,       // a decoder-only transformer over bytes
};

// What a ResNet does to images before its first block.
enum class ResNetStem {
  kSmall,     // a 3 x 3 convolution: for images of 32 pixels or so
  kImageNet,  // torchvision's: a 7 x 7 convolution and a pooling that halve them twice. On small
              // images, too, a twelfth of the computing
};

// The sizes of a GPT. Their defaults make 0.8 million parameters, which two processor cores train
// on a text of a megabyte in minutes.
struct GptOptions {
  std::int64_t vocabulary = 256;  // bytes
  std::int64_t context = 128;     // the longest sequence, in tokens
  std::int64_t layers = 4;
  std::int64_t heads = 4;  // divides width
  std::int64_t width = 128;
  // Score tokens by their embeddings rather than by a matrix of their own.
  bool tie_weights = false;
};

// What a model is made from. The same options give the same parameters, bit for bit, as the same
// module made by Python after torch.manual_seed(seed).
struct ModelOptions {
  ModelKind kind = ModelKind::kCnn;
  std::uint64_t seed = 0;

  // Of image models: what goes in, and how many classes come out.
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;
  std::int64_t classes = 10;

  // Of kMlp: the widths of its hidden layers, {4096, 4096, 1024} for the large one.
  std::vector<std::int64_t> hidden = {256, 256};

  ResNetStem stem = ResNetStem::kSmall;  // of kResNet18

  GptOptions gpt;

  // Of models with convolutions: keep images and weights with the channels innermost, which
  // processors and GPUs work on faster. Same numbers but for rounding.
  bool channels_last = false;
};

// What a user calls the model: "cnn", "mlp", "resnet18", "gpt".
std::string ModelName(ModelKind kind);

// A flag and its value.
using ModelFlag = std::pair<std::string, std::string>;

// The flags that decide what the parameters of the model are, each as a user would give it:
// {"--context", "128"}, ... of a GPT. Two models with the same name and equal flags, fitted to the
// same data, can take each other's parameters.
std::vector<ModelFlag> ModelFlags(const ModelOptions& options);

// Sets the sizes in `options` that the data decides: of images, or the vocabulary and the context
// of text. kInvalidArgument, one sentence, and `options` untouched when the model is for another
// kind of data.
absl::Status FitModelToData(const DataShape& shape, ModelOptions* options);

// kInvalidArgument and one sentence unless MakeModel can make this.
absl::Status CheckModelOptions(const ModelOptions& options);

}  // namespace muster::trainer
