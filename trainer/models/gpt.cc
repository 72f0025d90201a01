#include "trainer/models/gpt.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/ones.h>
#include <torch/nn/init.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/compat/model_operators.h"
#include "trainer/models/tensor_layers.h"

namespace muster::trainer {
namespace {

namespace nn = torch::nn;

constexpr double kDeviation = 0.02;
constexpr std::int64_t kMlpFactor = 4;

// The mask of tokens that each token must not attend to, shared by all blocks of a GPT; rebuilt
// only for a text of another length. One thread.
class CausalMask {
 public:
  // For `x`, B x T x width: bool T x T on its device, true where a row's token must not attend.
  const at::Tensor& For(const at::Tensor& x) {
    const std::int64_t length = x.size(1);
    if (!mask_.defined() || mask_.size(0) != length || mask_.device() != x.device()) {
      mask_ = at::ones({length, length}, x.options().dtype(at::kBool)).triu(/*diagonal=*/1);
    }
    return mask_;
  }

 private:
  at::Tensor mask_;
};

// Shared by all layers of a GPT.
struct GptContext {
  CausalMask mask;
  std::shared_ptr<TensorLinks> links;  // null unless the layers are split over ranks
};

// Every token attends to itself and the preceding ones, with `heads` heads in parallel.
class Attention : public nn::Module {
 public:
  Attention(const GptOptions& options, std::shared_ptr<GptContext> context)
      : heads_(options.heads),
        context_(std::move(context)),
        c_attn_(register_module("c_attn", nn::Linear(options.width, 3 * options.width))),
        c_proj_(register_module("c_proj", nn::Linear(options.width, options.width))) {}

  // x: B x T x width, or this rank's part of the sequence.
  at::Tensor Forward(const at::Tensor& x) {
    TensorLinks* const links = context_->links.get();
    const std::int64_t head_width = x.size(2) / heads_;
    const std::int64_t heads = links == nullptr ? heads_ : heads_ / links->parts();
    const std::int64_t width = heads * head_width;
    const at::Tensor all = ColumnLinear(x, c_attn_->weight, c_attn_->bias, links);  // of all T
    const auto by_head = [&](const at::Tensor& part) {  // to B x heads x T x head_width
      return part.view({all.size(0), all.size(1), heads, head_width}).transpose(1, 2);
    };
    const std::vector<at::Tensor> parts = all.split(width, /*dim=*/2);
    const at::Tensor mixed = compat::CausalAttention(by_head(parts[0]), by_head(parts[1]),
                                                     by_head(parts[2]), context_->mask.For(all))
                                 .transpose(1, 2);
    return RowLinear(mixed.reshape({all.size(0), all.size(1), width}), c_proj_->weight,
                     c_proj_->bias, links);
  }

 private:
  const std::int64_t heads_;  // of all ranks
  const std::shared_ptr<GptContext> context_;
  nn::Linear c_attn_;  // queries, keys and values
  nn::Linear c_proj_;
};

class Mlp : public nn::Module {
 public:
  Mlp(const GptOptions& options, std::shared_ptr<GptContext> context)
      : context_(std::move(context)),
        c_fc_(register_module("c_fc", nn::Linear(options.width, kMlpFactor * options.width))),
        c_proj_(register_module("c_proj", nn::Linear(kMlpFactor * options.width, options.width))) {}

  at::Tensor Forward(const at::Tensor& x) {
    TensorLinks* const links = context_->links.get();
    const at::Tensor wide = at::gelu(ColumnLinear(x, c_fc_->weight, c_fc_->bias, links));
    return RowLinear(wide, c_proj_->weight, c_proj_->bias, links);
  }

 private:
  const std::shared_ptr<GptContext> context_;
  nn::Linear c_fc_;
  nn::Linear c_proj_;
};

nn::LayerNorm Norm(const GptOptions& options) {
  return nn::LayerNorm(nn::LayerNormOptions({options.width}));
}

class Block : public nn::Module {
 public:
  Block(const GptOptions& options, const std::shared_ptr<GptContext>& context)
      : ln_1_(register_module("ln_1", Norm(options))),
        attn_(register_module("attn", std::make_shared<Attention>(options, context))),
        ln_2_(register_module("ln_2", Norm(options))),
        mlp_(register_module("mlp", std::make_shared<Mlp>(options, context))) {}

  at::Tensor Forward(const at::Tensor& x) {
    const at::Tensor y = x + attn_->Forward(ln_1_(x));
    return y + mlp_->Forward(ln_2_(y));
  }

 private:
  nn::LayerNorm ln_1_;
  const std::shared_ptr<Attention> attn_;
  nn::LayerNorm ln_2_;
  const std::shared_ptr<Mlp> mlp_;
};

class Gpt : public nn::Module {
 public:
  Gpt(const DataShape& text, const GptOptions& options) : vocabulary_(text.classes) {
    const auto body = register_module("transformer", std::make_shared<nn::Module>());
    wte_ = body->register_module("wte", nn::Embedding(text.classes, options.width));
    wpe_ = body->register_module("wpe", nn::Embedding(text.context, options.width));
    const auto blocks = body->register_module("h", std::make_shared<nn::Module>());
    for (std::int64_t i = 0; i < options.layers; ++i) {
      blocks_.push_back(
          blocks->register_module(std::to_string(i), std::make_shared<Block>(options, context_)));
    }
    ln_f_ = body->register_module("ln_f", Norm(options));
    if (!options.tie_weights) {
      lm_head_ = register_module(
          "lm_head", nn::Linear(nn::LinearOptions(options.width, text.classes).bias(false)));
    }
    DrawWeights(options);
  }

  at::Tensor Embed(const at::Tensor& tokens) {
    TensorLinks* const links = context_->links.get();
    return VocabularyEmbedding(tokens, wte_->weight, vocabulary_, links) +
           wpe_(OwnPositions(tokens.size(1), tokens.options(), links));
  }
  const std::vector<std::shared_ptr<Block>>& blocks() const { return blocks_; }
  at::Tensor Head(const at::Tensor& x) {
    const at::Tensor& weight = lm_head_.is_empty() ? wte_->weight : lm_head_->weight;
    return VocabularyScores(ln_f_(x), weight, vocabulary_, context_->links.get());
  }

  void UseLinks(std::shared_ptr<TensorLinks> links) { context_->links = std::move(links); }
  // As in Megatron-LM: attention by heads, the MLP by its inner outputs, the tokens.
  std::map<std::string, TensorSplit> Splits() const {
    std::map<std::string, TensorSplit> splits = {
        {"transformer.wte.weight", TensorSplit::kVocabulary}};
    if (!lm_head_.is_empty()) splits["lm_head.weight"] = TensorSplit::kVocabulary;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const std::string block = absl::StrCat("transformer.h.", i);
      splits[block + ".attn.c_attn.weight"] = TensorSplit::kRowsOfThree;
      splits[block + ".attn.c_attn.bias"] = TensorSplit::kRowsOfThree;
      splits[block + ".attn.c_proj.weight"] = TensorSplit::kColumns;
      splits[block + ".mlp.c_fc.weight"] = TensorSplit::kRows;
      splits[block + ".mlp.c_fc.bias"] = TensorSplit::kRows;
      splits[block + ".mlp.c_proj.weight"] = TensorSplit::kColumns;
    }
    return splits;
  }

 private:
  void DrawWeights(const GptOptions& options) {
    const double residual = kDeviation / std::sqrt(2.0 * static_cast<double>(options.layers));
    for (const auto& parameter : named_parameters()) {
      const std::string& name = parameter.key();
      if (parameter.value().dim() > 1) {
        const bool adds_to_stream = name.find("c_proj") != std::string::npos;
        nn::init::normal_(parameter.value(), 0, adds_to_stream ? residual : kDeviation);
      } else if (name.find(".ln_") == std::string::npos) {
        nn::init::zeros_(parameter.value());
      }
    }
  }

  const std::int64_t vocabulary_;
  const std::shared_ptr<GptContext> context_ = std::make_shared<GptContext>();
  nn::Embedding wte_{nullptr};
  nn::Embedding wpe_{nullptr};
  std::vector<std::shared_ptr<Block>> blocks_;
  nn::LayerNorm ln_f_{nullptr};
  nn::Linear lm_head_{nullptr};  // empty with tied weights
};

absl::StatusOr<Network> MakeGpt(const DataShape& text, const GptOptions& options) {
  for (const std::int64_t size :
       {text.classes, text.context, options.layers, options.heads, options.width}) {
    if (size < 1) return absl::InvalidArgumentError("each of its sizes must be at least 1");
  }
  if (options.width % options.heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its width of ", options.width, " cannot be divided by its ", options.heads,
        " heads; take a width of ", (options.width / options.heads + 1) * options.heads,
        ", or heads that divide it"));
  }
  const auto net = std::make_shared<Gpt>(text, options);
  Network network{.module = net,
                  .draws_random_numbers = false,
                  .use_links = [net](auto links) { net->UseLinks(std::move(links)); },
                  .tensor_divides = static_cast<int>(options.heads),
                  .tensor_divides_what = "attention heads",
                  .splits = net->Splits(),
                  .splits_sequence = true,
                  .split_scores = text.classes};
  network.stages.push_back({"transformer.wte",
                            [net](const at::Tensor& x) { return net->Embed(x); },
                            {"transformer.wte", "transformer.wpe"}});
  for (std::size_t i = 0; i < net->blocks().size(); ++i) {
    network.stages.push_back(
        {absl::StrCat("transformer.h.", i),
         [block = net->blocks()[i]](const at::Tensor& x) { return block->Forward(x); }});
  }
  network.stages.push_back(
      {"transformer.ln_f",
       [net](const at::Tensor& x) { return net->Head(x); },
       {"transformer.ln_f", options.tie_weights ? "transformer.wte" : "lm_head"}});
  return network;
}

std::optional<std::vector<ModelFlag>> RecognizeGpt(const TensorShapes& shapes) {
  const auto* tokens = FindShape(shapes, "transformer.wte.weight", 2);
  const auto* places = FindShape(shapes, "transformer.wpe.weight", 2);
  if (tokens == nullptr || places == nullptr) return std::nullopt;
  int layers = 0;
  while (FindShape(shapes, absl::StrCat("transformer.h.", layers, ".ln_1.weight"), 1) != nullptr) {
    ++layers;
  }
  return std::vector<ModelFlag>{{"--layers", absl::StrCat(layers)},
                                {"--heads", ""},  // tensors do not show them
                                {"--width", absl::StrCat((*tokens)[1])},
                                {"--context", absl::StrCat((*places)[0])},
                                {"--vocabulary", absl::StrCat((*tokens)[0])}};
}

}  // namespace

ModelRecipe GptRecipe(const GptOptions& defaults) {
  const auto options = std::make_shared<GptOptions>(defaults);
  return {.name = "gpt",
          .takes = DataShape::Kind::kText,
          .add_flags =
              [options](FlagSet& flags) {
                flags.Number("--layers", options->layers, 1, 1000, "For gpt: transformer blocks");
                flags.Number("--heads", options->heads, 1, 1000,
                             "For gpt: attention heads of each block");
                flags.Number("--width", options->width, 1, 1 << 16,
                             "For gpt: size of an embedding");
              },
          .make = [options](const DataShape& text) { return MakeGpt(text, *options); },
          .recognize = RecognizeGpt};
}

}  // namespace muster::trainer
