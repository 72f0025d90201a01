#include "rendezvous/wire/tcpstore_dialect.h"

namespace muster::rendezvous {

TcpStoreShape ShapeOf(TcpStoreOp op) {
  switch (op) {
    case TcpStoreOp::kValidate:
    case TcpStoreOp::kPing:
      return {.number_bytes = 4};
    case TcpStoreOp::kGet:
    case TcpStoreOp::kDeleteKey:
    case TcpStoreOp::kQueuePop:
    case TcpStoreOp::kQueueLength:
    case TcpStoreOp::kWatchKey:
      return {.strings = 1, .keys = 1};
    case TcpStoreOp::kSet:
    case TcpStoreOp::kAppend:
    case TcpStoreOp::kQueuePush:
      return {.strings = 2, .keys = 1};
    case TcpStoreOp::kCompareSet:
      return {.strings = 3, .keys = 1};
    case TcpStoreOp::kAdd:
    case TcpStoreOp::kBarrier:
      return {.strings = 1, .keys = 1, .number_bytes = 8};
    case TcpStoreOp::kCheck:
    case TcpStoreOp::kWait:
    case TcpStoreOp::kMultiGet:
      return {.counted = true, .strings = 1, .keys = 1};
    case TcpStoreOp::kMultiSet:
      return {.counted = true, .strings = 2, .keys = 1};
    case TcpStoreOp::kGetNumKeys:
    case TcpStoreOp::kCancelWait:
    case TcpStoreOp::kListKeys:
      return {};
  }
  return {};
}

}  // namespace muster::rendezvous
