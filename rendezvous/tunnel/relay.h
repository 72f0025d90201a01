// Carries bytes between a connection of this machine and a stream to another one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <boost/asio/ip/tcp.hpp>

#include "base/lifetime.h"
#include "rendezvous/tunnel/byte_stream.h"

namespace muster::rendezvous {

// The two directions are independent of one another, and of each:
//
//   reading    waits for bytes, from the connection or from the stream
//   writing    has some that the other side has not taken: it reads no more until it has
//   ended      the source has said that it is at its end, and the sink was told so
//
// So the relay holds at most one chunk for each direction, however slow one side is, and what waits
// beyond that waits in the kernels' and in HTTP/2's windows. Once both directions have ended, the
// relay is over in good order. It is over at once when the connection or the stream breaks, and
// then the other one is broken as well: who is at the other end sees what he would see without a
// tunnel.
//
// Both ends of a tunnel are relays: one has the worker's connection, one has a connection to the
// store. Lives on the loop's thread.
class Relay {
 public:
  using Socket = boost::asio::ip::tcp::socket;

  // `buffer` is used within calls alone, and may be shared: a chunk is at most as large. `stream`
  // and `buffer` must outlive the relay.
  Relay(Socket connection, ByteStream& stream, std::vector<char>& buffer);
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // Begins to carry.
  void Start();

  // What the stream says; nothing of it counts any more once the relay is over.
  void OnBytes(std::string bytes);
  void OnEnd();
  void OnWritten();
  // The stream has broken: resets the connection. The stream is not asked for anything any more.
  void OnBroken();

  bool over() const { return over_; }

 private:
  void AwaitReadable();
  // Gives the stream what there is to read.
  void Take();
  // Gives the connection what the stream has brought.
  void Give();
  void EndIfBothHave();
  // The connection has broken.
  void Break();
  void Reset();

  Socket connection_;
  ByteStream& stream_;
  std::vector<char>& buffer_;

  std::string to_give_;  // what the connection has not taken begins at given_
  std::size_t given_ = 0;
  bool said_end_ = false;   // to the stream
  bool end_taken_ = false;  // by the stream
  bool end_given_ = false;  // to the connection
  bool over_ = false;
  base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous
