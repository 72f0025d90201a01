// One connection to a TcpStoreServer: reads, has requests carried out, writes.
//
// A session reads only when the kernel says that there is something, into a buffer that all
// sessions share, so that an idle connection costs a few hundred bytes. It works in turns: one read
// and a limited number of requests, then the loop's other handlers get their turn, so that a
// flooding client does not keep others waiting. The replies of a turn are written at once.
//
// States, each left only for a later one except the first two:
//   reading    waits for something to read, or has a turn pending for what it holds
//   paused     the client does not take its replies; nothing is read until it has
//   ending     the client sends no more; what is left to send it is still sent
//   closed     for whatever reason; told to the owner once
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "rendezvous/fronts/tcpstore_codec.h"
#include "rendezvous/fronts/tcpstore_options.h"
#include "rendezvous/fronts/tcpstore_service.h"

namespace muster::rendezvous {

class TcpStoreSession;

// What the sessions of one server share. Outlives them as long as they are not closed.
struct TcpStoreSessions {
  boost::asio::io_context& loop;
  const TcpStoreOptions& options;
  const TcpStoreDecodeLimits decode_limits;
  // A session has closed: forget it.
  std::function<void(TcpStoreSession&)> on_closed;

  std::unique_ptr<TcpStoreService> service;
  DialectHint hint = DialectHint();
  std::vector<char> read_buffer;
  std::size_t input_bytes = 0;  // held for requests that are not complete
  // Sessions whose output has grown during another session's turn.
  std::vector<std::shared_ptr<TcpStoreSession>> pushed;
};

// Made, used and destroyed on the loop's thread.
class TcpStoreSession final : public TcpStoreClient,
                              public std::enable_shared_from_this<TcpStoreSession> {
 public:
  TcpStoreSession(boost::asio::ip::tcp::socket socket, TcpStoreSessions& shared);
  ~TcpStoreSession() override = default;

  // Sets the socket's options and begins to read.
  void Start();
  // Ends the connection without another word. Idempotent.
  void Close();

  // The client's host (HostAddress); unspecified when the connection ended before it was started.
  const boost::asio::ip::address& host() const { return host_; }

  void OnPushed() override;

 private:
  void AwaitReadable();
  void AwaitWritable();
  void AwaitTurn();
  void AwaitGrace();

  // Handles the requests of one read, or those left from the last turn.
  //
  // Clients before 2.1 send an opcode in a segment of its own, and Linux acknowledges two segments
  // at once when they have been read: an extra packet before each reply, a fifth of the cost of a
  // round trip. So input from clients that may be such is only peeked at, and taken out when the
  // replies, which acknowledge it as well, are sent.
  void TakeTurn();
  // Takes out of the socket what was peeked at.
  void Discard();
  // Carries out what `input` has, up to a turn's limit, and keeps the rest.
  void Process(std::string_view input);
  // Sends what there is to all clients that this turn concerned.
  void FinishTurn();
  // Sends as much of the output as the kernel takes; the rest follows when it takes more.
  void Flush();
  void OnWritable();
  void OnEndOfInput();
  void Fail(const std::string& why);
  // Accounts for the memory that waits for more input.
  void CountInput();

  std::size_t unsent() const { return output.size() - sent_; }
  bool closed() const { return state_ == State::kClosed; }

  TcpStoreSessions& shared_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::ip::address host_;

  TcpStoreDecoder decoder_;
  std::string held_;           // read, but not looked at
  std::size_t counted_ = 0;    // of decoder_ and held_, in shared_.input_bytes
  std::size_t sent_ = 0;       // of output
  std::size_t looked_at_ = 0;  // and still in the socket
  std::unique_ptr<boost::asio::steady_timer> grace_;  // only while it runs

  // What is under way in the loop, each at most once at a time, in whatever state. A handler that
  // finds the session closed does nothing.
  bool awaits_readable_ = false;
  bool awaits_writable_ = false;  // for output that the kernel did not take
  bool awaits_turn_ = false;      // for requests that the last turn left
  bool pushed_ = false;           // is in shared_.pushed
  enum class State {
    kServing,
    kPaused,  // its client does not take its replies: no more is read until it does
    kEnding,  // its client has ended its side, and takes what is left for it
    kClosed,
  } state_ = State::kServing;
};

}  // namespace muster::rendezvous
