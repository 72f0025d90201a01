// Messages as gRPC's generic service has them: as bytes.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/status/status.h"

namespace muster::rendezvous {

// InvalidArgument: they are no such message. The bytes are gone afterwards.
absl::Status ParseBytes(grpc::ByteBuffer* bytes, google::protobuf::MessageLite* message);

// Takes the place of what was in `bytes`.
void ToBytes(const google::protobuf::MessageLite& message, grpc::ByteBuffer* bytes);

}  // namespace muster::rendezvous
