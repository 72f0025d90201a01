// A small GPT, which predicts each byte of a text from those before it.
#pragma once

#include "trainer/models/model_options.h"
#include "trainer/models/network.h"

namespace muster::trainer {

// GPT-2's network without dropout: token and position embeddings; blocks of causal self-attention
// and an MLP with GELU that is four times as wide, each preceded by a LayerNorm and added to its
// input; a final LayerNorm; and scores for every token. The names are GPT-2's (transformer.wte,
// transformer.wpe, transformer.h.0.ln_1, ...attn.c_attn, ...attn.c_proj, ...ln_2, ...mlp.c_fc,
// ...mlp.c_proj, transformer.ln_f, lm_head); weights are laid out as in torch.nn.Linear, out x in.
// After all layers are created, weights are drawn in the order of named_parameters() from a normal
// distribution with mean 0 and standard deviation 0.02, or 0.02 / sqrt(2 * layers) for the two
// c_proj of a block, which add to the residual stream. Biases are 0. lm_head has no bias; with
// tie_weights there is no lm_head, and wte is used instead.
Network MakeGpt(const ModelOptions& options);

}  // namespace muster::trainer
