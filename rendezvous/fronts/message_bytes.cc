#include "rendezvous/fronts/message_bytes.h"

#include <cstdint>

#include <grpcpp/impl/codegen/proto_utils.h>

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

using Serialization = grpc::SerializationTraits<google::protobuf::MessageLite>;

}  // namespace

absl::Status ParseBytes(grpc::ByteBuffer* bytes, google::protobuf::MessageLite* message) {
  const bool parsed = Serialization::Deserialize(bytes, message).ok();
  bytes->Clear();
  if (parsed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the call's message is no ", message->GetTypeName()));
}

void ToBytes(const google::protobuf::MessageLite& message, grpc::ByteBuffer* bytes) {
  bool own = false;
  // gRPC writes to an empty one alone. It fails for a message of 2 GiB.
  bytes->Clear();
  Serialization::Serialize(message, bytes, &own);
}

}  // namespace muster::rendezvous
