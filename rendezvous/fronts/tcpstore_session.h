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
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "rendezvous/core/job/key_value_store.h"
#include "rendezvous/fronts/tcpstore_service.h"
#include "rendezvous/wire/tcpstore_codec.h"

namespace muster::rendezvous {

// The options of a TcpStoreServer.

struct TcpStoreOptions {
  // The protocol has no error reply: a client that breaks a limit loses its connection, and a
  // warning says why. The sizes of keys and the number of keys are limited as in c10d's own server
  // with libuv. That takes values of 8 MiB; the one without libuv, which is all there was up to
  // PyTorch 2.3, takes any.
  KeyValueLimits limits{.key_bytes = 8 << 10,
                        .value_bytes = 256 << 20,
                        .keys = 4'000'000,
                        .total_bytes = std::size_t{1} << 30,
                        .waits = 1'000'000,
                        .wait_bytes = std::size_t{1} << 30};
  std::size_t keys_per_request = 128 << 10;
  // The size of one request, and of all incomplete requests together: of what has come of them, not
  // of what their lengths say.
  std::size_t request_bytes = 256 << 20;
  std::size_t input_bytes = std::size_t{1} << 30;

  // Connections beyond this number wait in the listening socket's queue.
  std::size_t connections = 262'144;
  // Replies that a client has not taken: with more than the first limit none of its further
  // requests is read, with more than the second the connection is closed.
  std::size_t output_pause_bytes = 1 << 20;
  std::size_t output_limit_bytes = 256 << 20;
  // Replies that all clients together have not taken: beyond, no further request is carried out
  // until there is room. A value has a copy for each client that is about to take it.
  std::size_t output_bytes = std::size_t{1} << 30;

  // Connections from this machine are taken from this process's user and from root alone
  // (peer.h); and what to do where that is wrong (OwnUsers).
  bool own_user_only = false;
  std::string for_other_users =
      "if your workers run as another user than their agent, use --worker-store=worker";

  // What clients before 2.2 speak, k1x or k21, for the few requests that do not show it.
  std::optional<TcpStoreDialect> legacy_dialect;
};

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
  std::size_t input_bytes = 0;   // held for requests that are not complete
  std::size_t output_bytes = 0;  // held for clients that have not taken them yet
  // Sessions whose requests wait until output_bytes has room.
  std::vector<std::shared_ptr<TcpStoreSession>> awaiting_room;
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
  // Goes on with a request that has begun. False: the connection is closed.
  bool Continue();
  // Sends what there is to all clients that this turn concerned.
  void FinishTurn();
  // Sends as much of the output as the kernel takes; the rest follows when it takes more.
  void Flush();
  void OnWritable();
  void OnEndOfInput();
  void Fail(const std::string& why);
  // Accounts for the memory that waits for more input.
  void CountInput();
  // Accounts for the output; who has waited for room goes on when there is some.
  void CountOutput();
  bool HasRoom() const;

  // Something is to be done for it in its next turn.
  bool is_busy() const { return has_begun() || !held_.empty(); }
  std::size_t unsent() const { return output.size() - sent_; }
  bool closed() const { return state_ == State::kClosed; }

  TcpStoreSessions& shared_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::ip::address host_;

  TcpStoreDecoder decoder_;
  std::string held_;                // read, but not looked at
  std::size_t counted_ = 0;         // of decoder_ and held_, in shared_.input_bytes
  std::size_t counted_output_ = 0;  // in shared_.output_bytes
  std::size_t sent_ = 0;            // of output
  std::size_t looked_at_ = 0;       // and still in the socket
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
