#include "trainer/parallel/tensor_traffic.h"

#include "trainer/comm/traffic.h"

namespace muster::trainer {

SplitBytes BytesOfSplit(const SplitGpt& gpt) {
  const std::int64_t activations = gpt.tokens * gpt.width * gpt.bytes;
  const std::int64_t forward = 2 * gpt.layers + (gpt.embeds ? 1 : 0);
  const std::int64_t backward = 2 * gpt.layers + (gpt.scores ? 1 : 0);
  const std::int64_t loss = gpt.scores ? 3 * gpt.tokens * gpt.loss_bytes : 0;
  return {.forward = RingBytes(gpt.ranks, forward * activations + loss),
          .backward = RingBytes(gpt.ranks, backward * activations)};
}

}  // namespace muster::trainer
