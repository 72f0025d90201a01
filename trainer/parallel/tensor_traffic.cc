#include "trainer/parallel/tensor_traffic.h"

#include "trainer/comm/traffic.h"

namespace muster::trainer {

SplitBytes BytesOfSplit(const SplitGpt& gpt) {
  const std::int64_t activations = gpt.tokens * gpt.width * gpt.bytes;
  const std::int64_t embeds = gpt.embeds ? 1 : 0;
  const std::int64_t scores = gpt.scores ? 1 : 0;
  const std::int64_t loss = RingBytes(gpt.ranks, scores * 3 * gpt.tokens * gpt.loss_bytes);
  const auto halves = [&](std::int64_t count) {  // of an all-reduce
    return RingBytes(gpt.ranks, count * activations) / 2;
  };
  if (gpt.splits_sequence) {
    return {.forward = halves(4 * gpt.layers + embeds + scores) + loss,
            .backward = halves(6 * gpt.layers + embeds + 2 * scores)};
  }
  return {.forward = halves(4 * gpt.layers + 2 * embeds) + loss,
          .backward = halves(4 * gpt.layers + 2 * scores)};
}

}  // namespace muster::trainer
