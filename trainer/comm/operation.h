// The operations of a group of ranks.
#pragma once

#include <cstdint>

namespace muster::trainer {

enum class Operation : std::uint8_t {
  kAllReduce,
  kAllGather,
  kBroadcast,
  kReduceScatter,
  kSend,
  kReceive,
};

// "all-reduce", "all-gather", "broadcast", "reduce-scatter", "send", "receive".
const char* OperationName(Operation operation);

}  // namespace muster::trainer
