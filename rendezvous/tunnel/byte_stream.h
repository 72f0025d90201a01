// One stream of a tunnel, as the relay at either of its ends sees it.
#pragma once

#include <string_view>

namespace muster::rendezvous {

// What Relay asks of the gRPC call that it is an end of. Called on the loop; what it asks for is
// answered by a call of the relay's, from the loop as well and not from within.
class ByteStream {
 public:
  // Relay::OnBytes or OnEnd follows. Not before the answer to the last one.
  virtual void Read() = 0;
  // Relay::OnWritten follows, once gRPC takes more. Not before the answer to the last one.
  virtual void Write(std::string_view bytes) = 0;
  // As Write, but says that no more bytes will come.
  virtual void WriteEnd() = 0;
  // Both directions have ended: nothing else is asked for.
  virtual void Finish() = 0;
  // The connection was reset: the other end's is to be reset, too. Nothing else is asked for.
  virtual void Abort() = 0;

 protected:
  ~ByteStream() = default;
};

}  // namespace muster::rendezvous
