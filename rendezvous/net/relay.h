// Carries bytes between a local connection and a stream to another machine.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/ip/tcp.hpp>

#include "base/lifetime.h"

namespace muster::rendezvous {

// One stream of a tunnel, as seen by the relay at either end.

// What Relay needs from its gRPC call. Called on the loop; results arrive through a method of
// Relay, also on the loop and not from within the call.
class ByteStream {
 public:
  // Relay::OnBytes or OnEnd follows. Not before the previous result.
  virtual void Read() = 0;
  // Relay::OnWritten follows, once gRPC accepts more. Not before the previous result.
  virtual void Write(std::string_view bytes) = 0;
  // As Write, and marks the end of the bytes.
  virtual void WriteEnd() = 0;
  // Both directions have ended. Last call.
  virtual void Finish() = 0;
  // The connection was reset: the other end's must be reset, too. Last call.
  virtual void Abort() = 0;

 protected:
  ~ByteStream() = default;
};

// Each of the two independent directions is
//
//   reading    waiting for bytes from the connection or from the stream
//   writing    holding bytes that the other side has not taken; reads no more until it has
//   ended      the source has reached its end, and the sink has been told so
//
// So the relay holds at most one chunk per direction, however slow one side is; the rest waits in
// the kernel's and HTTP/2's windows. Once both directions have ended, the relay is over in good
// order. If the connection or the stream breaks, it is over at once and breaks the other one: the
// process at the far end sees what it would see without a tunnel.
//
// Both ends of a tunnel are relays: one has the worker's connection, the other a connection to the
// store. Lives on the loop's thread.
class Relay {
 public:
  using Socket = boost::asio::ip::tcp::socket;

  // `buffer` is used only within calls, and may be shared; its size limits a chunk. `stream` and
  // `buffer` must outlive the relay.
  Relay(Socket connection, ByteStream& stream, std::vector<char>& buffer);
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // Begins to relay.
  void Start();

  // Events of the stream; ignored once the relay is over.
  void OnBytes(std::string bytes);
  void OnEnd();
  void OnWritten();
  // The stream has broken: resets the connection. The stream is not used any more.
  void OnBroken();

  bool over() const { return over_; }

 private:
  void AwaitReadable();
  // Reads from the connection and writes to the stream.
  void Take();
  // Writes the stream's bytes to the connection.
  void Give();
  void EndIfBothHave();
  // The connection has broken.
  void Break();
  void Reset();

  Socket connection_;
  ByteStream& stream_;
  std::vector<char>& buffer_;

  std::string to_give_;  // unsent bytes for the connection start at given_
  std::size_t given_ = 0;
  bool said_end_ = false;   // to the stream
  bool end_taken_ = false;  // by the stream
  bool end_given_ = false;  // to the connection
  bool over_ = false;
  base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous
