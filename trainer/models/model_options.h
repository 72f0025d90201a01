// The choice of a network and its size.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "trainer/data/data_shape.h"

namespace muster::trainer {

enum class ModelKind {
  kCnn,  // two 3 x 3 convolutions (16 and 32 channels), each followed by max-pooling that halves
         // the image, then 128 hidden units
  kMlp,  // hidden layers of the widths in `hidden`
  kResNet18,  // torchvision's resnet18
  kGpt,       // a decoder-only transformer over bytes
};

// The layers of a ResNet before its first block.
enum class ResNetStem {
  kSmall,     // a 3 x 3 convolution, for images of about 32 x 32 pixels
  kImageNet,  // torchvision's: a 7 x 7 convolution and a pooling, which each halve the image. Takes
              // a twelfth of the computation, on small images as well
};

// The sizes of a GPT. The defaults give 0.8 million parameters, which two CPU cores train on a
// megabyte of text in minutes.
struct GptOptions {
  std::int64_t vocabulary = 256;  // different tokens; 256 for bytes
  std::int64_t context = 128;     // the longest sequence, in tokens
  std::int64_t layers = 4;
  std::int64_t heads = 4;  // must divide width
  std::int64_t width = 128;
  // Compute scores with the token embeddings instead of a separate matrix.
  bool tie_weights = false;
};

// Everything that defines a model. Its initial parameters are, bit for bit, those of the same
// module created in Python after torch.manual_seed(seed).
struct ModelOptions {
  ModelKind kind = ModelKind::kCnn;
  std::uint64_t seed = 0;

  // For image models: the size of the images, and the number of classes.
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;
  std::int64_t classes = 10;

  // For kMlp: the widths of the hidden layers; {4096, 4096, 1024} for mlp-large.
  std::vector<std::int64_t> hidden = {256, 256};

  ResNetStem stem = ResNetStem::kSmall;  // for kResNet18

  GptOptions gpt;

  // For models with convolutions: store images and weights with the channels innermost, which is
  // faster on CPUs and GPUs. Same results up to rounding.
  bool channels_last = false;
};

// The name that users see: "cnn", "mlp", "resnet18" or "gpt".
std::string ModelName(ModelKind kind);

// A flag and its value.
using ModelFlag = std::pair<std::string, std::string>;

// The flags that determine the model's parameters, as a user would give them: {"--context", "128"}
// and so on for a GPT. Two models with the same name and flags, fitted to the same data, can load
// each other's parameters.
std::vector<ModelFlag> ModelFlags(const ModelOptions& options);

// Sets the sizes in `options` that depend on the data: those of images and the number of classes,
// or the vocabulary and context of text. kInvalidArgument and one sentence, with `options`
// unchanged, when the model is for another kind of data.
absl::Status FitModelToData(const DataShape& shape, ModelOptions* options);

// kInvalidArgument and one sentence when MakeModel cannot create this model.
absl::Status CheckModelOptions(const ModelOptions& options);

}  // namespace muster::trainer
