// How many bytes the ranks of a split GPT exchange, by formula.
#pragma once

#include <cstdint>

namespace muster::trainer {

// What a rank has of a GPT, and what goes through it in a pass.
struct SplitGpt {
  int ranks = 1;                // that have a part of each layer
  std::int64_t layers = 0;      // blocks
  std::int64_t width = 0;       // of an embedding
  bool embeds = true;           // has the token embeddings: the first stages of a pipeline
  bool scores = true;           // has the head: the last ones
  std::int64_t tokens = 0;      // B x T of a micro-batch
  std::int64_t bytes = 4;       // of an activation
  std::int64_t loss_bytes = 4;  // of a score when the loss is computed: at least float32's
  bool splits_sequence = false;
};

// Bytes that a rank sends in each direction of a micro-batch. With the n ranks' activations of
// a = tokens x width x bytes, an all-reduce sends 2(n-1)/n a (RingBytes). Each block does two of
// them forward, after its attention and its MLP, and two backward, before them: Shoeybi et al.,
// "Megatron-LM", 2019, figure 4. The embeddings do one forward, and the head one backward; and the
// cross entropy sends 3 numbers a token forward. Recomputing blocks costs their forward again.
//
// Where they split the sequence, each all-reduce becomes its two halves, one of them where the
// layers begin and one where they end, both in forward and backward passes; and inputs of which a
// rank has kept its part are gathered once more backward: Korthikanti et al., "Reducing Activation
// Recomputation in Large Transformer Models", 2022. Gradients of whole parameters are extra.
struct SplitBytes {
  std::int64_t forward = 0;
  std::int64_t backward = 0;
};
SplitBytes BytesOfSplit(const SplitGpt& gpt);

}  // namespace muster::trainer
