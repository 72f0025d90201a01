#include "trainer/comm/operation.h"

namespace muster::trainer {

const char* OperationName(Operation operation) {
  switch (operation) {
    case Operation::kAllReduce:
      return "all-reduce";
    case Operation::kAllGather:
      return "all-gather";
    case Operation::kBroadcast:
      return "broadcast";
    case Operation::kReduceScatter:
      return "reduce-scatter";
    case Operation::kSend:
      return "send";
    case Operation::kReceive:
      return "receive";
  }
  return "operation";
}

}  // namespace muster::trainer
