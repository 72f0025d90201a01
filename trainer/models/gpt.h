// A small GPT, which predicts each token of a text from the preceding ones.
#pragma once

#include <cstdint>

#include "trainer/models/recipe.h"

namespace muster::trainer {

// The sizes of a GPT; vocabulary and context come from the data. The defaults give 0.8 million
// parameters for bytes, which two CPU cores train on a megabyte of text in minutes.
struct GptOptions {
  std::int64_t layers = 4;
  std::int64_t heads = 4;  // must divide width
  std::int64_t width = 128;
  // Compute scores with the token embeddings instead of a separate matrix.
  bool tie_weights = false;
};

// GPT-2's network without dropout: token and position embeddings; blocks of causal self-attention
// and an MLP with GELU that is four times as wide, each preceded by a LayerNorm and added to its
// input; a final LayerNorm; and scores for every token. The names are GPT-2's (transformer.wte,
// transformer.wpe, transformer.h.0.ln_1, ...attn.c_attn, ...attn.c_proj, ...ln_2, ...mlp.c_fc,
// ...mlp.c_proj, transformer.ln_f, lm_head); weights are laid out as in torch.nn.Linear, out x in.
// After all layers are created, weights are drawn in the order of named_parameters() from a normal
// distribution with mean 0 and standard deviation 0.02, or 0.02 / sqrt(2 * layers) for the two
// c_proj of a block, which add to the residual stream. Biases are 0. lm_head has no bias; with
// tie_weights there is no lm_head, and wte is used instead. `defaults` are those of its flags.
ModelRecipe GptRecipe(const GptOptions& defaults = {});

}  // namespace muster::trainer
