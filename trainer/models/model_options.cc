#include "trainer/models/model_options.h"

#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

absl::Status Bad(ModelKind kind, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("make model ", ModelName(kind), ": ", why));
}

absl::Status CheckGpt(const GptOptions& gpt) {
  for (const std::int64_t size : {gpt.vocabulary, gpt.context, gpt.layers, gpt.heads, gpt.width}) {
    if (size < 1) return Bad(ModelKind::kGpt, "each of its sizes must be at least 1");
  }
  if (gpt.width % gpt.heads != 0) {
    return Bad(ModelKind::kGpt, absl::StrCat("its width of ", gpt.width,
                                             " cannot be divided by its ", gpt.heads, " heads"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string ModelName(ModelKind kind) {
  switch (kind) {
    case ModelKind::kCnn:
      return "cnn";
    case ModelKind::kMlp:
      return "mlp";
    case ModelKind::kResNet18:
      return "resnet18";
    case ModelKind::kGpt:
      return "gpt";
  }
  return "unknown";
}

std::vector<ModelFlag> ModelFlags(const ModelOptions& options) {
  switch (options.kind) {
    case ModelKind::kCnn:
      return {};
    case ModelKind::kMlp:
      return {{"--model", options.hidden == ModelOptions().hidden ? "mlp" : "mlp-large"}};
    case ModelKind::kResNet18:
      return {{"--stem", options.stem == ResNetStem::kSmall ? "small" : "imagenet"}};
    case ModelKind::kGpt:
      return {{"--width", absl::StrCat(options.gpt.width)},
              {"--layers", absl::StrCat(options.gpt.layers)},
              {"--heads", absl::StrCat(options.gpt.heads)},
              {"--context", absl::StrCat(options.gpt.context)},
              {"--vocabulary", absl::StrCat(options.gpt.vocabulary)}};
  }
  return {};
}

absl::Status FitModelToData(const DataShape& shape, ModelOptions* options) {
  const bool text = shape.kind == DataShape::Kind::kText;
  if (text != (options->kind == ModelKind::kGpt)) {
    return Bad(options->kind, text ? "it takes images, and the data is text"
                                   : "it takes text, and the data is images");
  }
  if (text) {
    options->gpt.vocabulary = shape.classes;
    options->gpt.context = shape.context;
  } else {
    options->channels = shape.channels;
    options->height = shape.height;
    options->width = shape.width;
    options->classes = shape.classes;
  }
  return absl::OkStatus();
}

absl::Status CheckModelOptions(const ModelOptions& options) {
  if (options.kind == ModelKind::kGpt) return CheckGpt(options.gpt);
  for (const std::int64_t size :
       {options.channels, options.height, options.width, options.classes}) {
    if (size < 1) return Bad(options.kind, "images and classes must have a size of at least 1");
  }
  if (options.kind == ModelKind::kCnn && (options.height < 4 || options.width < 4)) {
    return Bad(options.kind, absl::StrCat("images of ", options.height, " x ", options.width,
                                          " pixels are too small to be halved twice"));
  }
  if (options.kind == ModelKind::kMlp) {
    for (const std::int64_t width : options.hidden) {
      if (width < 1) return Bad(options.kind, absl::StrCat("a hidden layer of ", width, " units"));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::trainer
