// A small GPT: predicts each byte of a text from those before it.
#pragma once

#include "trainer/models/model_options.h"
#include "trainer/models/network.h"

namespace muster::trainer {

// GPT-2's network without dropout: token and position embeddings, blocks of causal self-attention
// and a GELU layer four times as wide, each behind a LayerNorm and added to its input, a last
// LayerNorm, and scores for every token. Names are those of GPT-2 (transformer.wte,
// transformer.wpe, transformer.h.0.ln_1, ...attn.c_attn, ...attn.c_proj, ...ln_2, ...mlp.c_fc,
// ...mlp.c_proj, transformer.ln_f, lm_head); all weights are those of torch.nn.Linear, out x in.
// Once all layers are made, weights are drawn in the order of named_parameters() from N(0, 0.02),
// and those of both c_proj, which add to the residual stream, from N(0, 0.02 / sqrt(2 * layers));
// biases are 0. lm_head has no bias, and with tie_weights there is no lm_head: wte takes its place.
Network MakeGpt(const ModelOptions& options);

}  // namespace muster::trainer
