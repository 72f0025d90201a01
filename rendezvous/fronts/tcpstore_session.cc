#include "rendezvous/fronts/tcpstore_session.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include <spdlog/spdlog.h>
#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"

#include "rendezvous/net/peer.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;

// A turn ends after so many requests, or replies of so many bytes.
constexpr int kRequestsPerTurn = 1024;
constexpr std::size_t kOutputPerTurn = 256 << 10;

// How long the value of an APPEND of 2.1 may come after its key. Both are sent in one call; only
// the network can part them.
constexpr std::chrono::milliseconds kGrace(50);

// What a connection keeps of its buffers while it is idle.
constexpr std::size_t kKeptBufferBytes = 2048;

// A client's host that dies says nothing. After `kIdleSeconds` without a byte the kernel asks, and
// it gives up after the time that it also allows for data that nobody acknowledges.
constexpr int kIdleSeconds = 60;
constexpr int kProbeSeconds = 15;
constexpr int kProbes = 4;
constexpr int kUnacknowledgedMs = 120'000;

void SetOption(int fd, int level, int name, int value) {
  // What cannot be set is not needed for the protocol.
  (void)setsockopt(fd, level, name, &value, sizeof value);
}

void Release(std::string& buffer) {
  if (buffer.capacity() > kKeptBufferBytes) {
    std::string().swap(buffer);  // an assignment would keep the memory
  } else {
    buffer.clear();
  }
}

}  // namespace

TcpStoreSession::TcpStoreSession(tcp::socket socket, TcpStoreSessions& shared)
    : shared_(shared), socket_(std::move(socket)), decoder_(shared.decode_limits, shared.hint) {
  boost::system::error_code error;
  const tcp::endpoint peer = socket_.remote_endpoint(error);
  if (!error) host_ = HostAddress(peer.address());
}

void TcpStoreSession::Start() {
  const int fd = socket_.native_handle();
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  SetOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledgedMs);
  AwaitReadable();
}

void TcpStoreSession::Close() {
  if (closed()) return;
  state_ = State::kClosed;
  shared_.service->Disconnect(*this);
  shared_.input_bytes -= counted_;
  std::string().swap(output);
  CountOutput();
  grace_.reset();
  boost::system::error_code ignored;
  socket_.close(ignored);
  shared_.on_closed(*this);
}

void TcpStoreSession::OnPushed() {
  if (pushed_) return;
  pushed_ = true;
  shared_.pushed.push_back(shared_from_this());
}

void TcpStoreSession::AwaitReadable() {
  if (awaits_readable_) return;
  awaits_readable_ = true;
  socket_.async_wait(tcp::socket::wait_read,
                     [this, self = shared_from_this()](const boost::system::error_code& error) {
                       awaits_readable_ = false;
                       if (closed()) return;
                       if (error) return Close();
                       // What is held, or has begun, comes first, and its turn is pending.
                       if (state_ == State::kServing && !is_busy()) TakeTurn();
                     });
}

void TcpStoreSession::AwaitWritable() {
  if (awaits_writable_) return;
  awaits_writable_ = true;
  socket_.async_wait(tcp::socket::wait_write,
                     [this, self = shared_from_this()](const boost::system::error_code& error) {
                       awaits_writable_ = false;
                       if (closed()) return;
                       if (error) return Close();
                       OnWritable();
                     });
}

void TcpStoreSession::AwaitTurn() {
  if (awaits_turn_) return;
  awaits_turn_ = true;
  boost::asio::post(shared_.loop, [this, self = shared_from_this()] {
    awaits_turn_ = false;
    if (state_ == State::kServing) TakeTurn();
  });
}

void TcpStoreSession::AwaitGrace() {
  grace_ = std::make_unique<boost::asio::steady_timer>(shared_.loop, kGrace);
  grace_->async_wait([this, self = shared_from_this()](const boost::system::error_code& error) {
    if (error || closed() || grace_ == nullptr) return;
    // What has come meanwhile, but was not read yet, is looked at first.
    TakeTurn();
    if (closed() || grace_ == nullptr) return;
    decoder_.EndGrace();
    Process({});
    FinishTurn();
  });
}

void TcpStoreSession::TakeTurn() {
  if (has_begun()) {
    Continue();
    return FinishTurn();
  }
  if (!held_.empty()) {
    Process(held_);
    return FinishTurn();
  }
  std::vector<char>& buffer = shared_.read_buffer;
  const int peek = decoder_.dialect() == TcpStoreDialect::k22 ? 0 : MSG_PEEK;
  const ssize_t count =
      recv(socket_.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT | peek);
  if (count == 0) return OnEndOfInput();
  if (count > 0) {
    if (peek != 0) looked_at_ = static_cast<std::size_t>(count);
    Process({buffer.data(), static_cast<std::size_t>(count)});
    if (peek != 0 && !closed()) {
      Flush();
      Discard();
    }
    return FinishTurn();
  }
  if (errno != EAGAIN && errno != EINTR) return Close();
  AwaitReadable();
}

void TcpStoreSession::Discard() {
  while (looked_at_ > 0 && !closed()) {
    // Of TCP, MSG_TRUNC discards what it reads (man 7 tcp).
    const ssize_t count =
        recv(socket_.native_handle(), nullptr, looked_at_, MSG_DONTWAIT | MSG_TRUNC);
    if (count > 0) {
      looked_at_ -= static_cast<std::size_t>(count);
    } else if (count == 0 || errno != EINTR) {
      return Close();
    }
  }
}

void TcpStoreSession::Process(std::string_view input) {
  const std::size_t whole = input.size();
  const std::size_t output_before = output.size();
  grace_.reset();
  bool more = true;
  for (int requests = 0; more && requests < kRequestsPerTurn; ++requests) {
    if (unsent() > shared_.options.output_pause_bytes ||
        output.size() - output_before > kOutputPerTurn || !HasRoom()) {
      break;
    }
    TcpStoreRequest request;
    switch (decoder_.Next(input, request)) {
      case TcpStoreDecoder::Result::kRequest:
        if (const absl::Status status = shared_.service->Apply(*this, request); !status.ok()) {
          return Fail(std::string(status.message()));
        }
        // What it names may be in `input`, of which there is only so much.
        while (has_begun() && !decoder_.holds_request()) {
          if (!Continue()) return;
        }
        more = !has_begun();
        break;
      case TcpStoreDecoder::Result::kNeedsMore:
        more = false;
        break;
      case TcpStoreDecoder::Result::kNeedsGrace:
        AwaitGrace();
        more = false;
        break;
      case TcpStoreDecoder::Result::kBroken:
        return Fail(decoder_.error());
    }
  }
  if (held_.empty()) {
    held_ = input;
  } else {
    held_.erase(0, whole - input.size());
  }
  if (held_.empty()) Release(held_);
  CountInput();
}

bool TcpStoreSession::Continue() {
  const absl::Status status = shared_.service->Continue(*this);
  if (!status.ok()) Fail(std::string(status.message()));
  return status.ok();
}

void TcpStoreSession::FinishTurn() {
  if (!closed()) {
    Flush();
    if (state_ == State::kServing && unsent() > shared_.options.output_pause_bytes) {
      state_ = State::kPaused;
    }
    if (state_ == State::kServing) {
      if (!has_begun() && !held_.empty() && !HasRoom()) {
        shared_.awaiting_room.push_back(shared_from_this());
      } else if (is_busy()) {
        AwaitTurn();
      } else {
        AwaitReadable();
      }
    }
  }
  // None of these is in a turn of its own, so none adds to the list.
  for (const std::shared_ptr<TcpStoreSession>& session : std::exchange(shared_.pushed, {})) {
    session->pushed_ = false;
    if (!session->closed()) session->Flush();
  }
}

void TcpStoreSession::Flush() {
  while (unsent() > 0 && !awaits_writable_) {
    const ssize_t count =
        send(socket_.native_handle(), output.data() + sent_, unsent(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count >= 0) {
      sent_ += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      AwaitWritable();
    } else if (errno != EINTR) {
      return Close();
    }
  }
  if (unsent() == 0) {
    Release(output);
    sent_ = 0;
  } else if (unsent() > shared_.options.output_limit_bytes) {
    Fail(absl::StrCat("it does not read its replies: ", unsent(), " bytes are left"));
  } else if (sent_ > output.size() / 2) {
    output.erase(0, sent_);
    sent_ = 0;
  }
  CountOutput();
}

void TcpStoreSession::OnWritable() {
  Flush();
  if (closed()) return;
  if (state_ == State::kEnding && unsent() == 0) return Close();
  if (state_ != State::kPaused || unsent() > shared_.options.output_pause_bytes) return;
  state_ = State::kServing;
  AwaitTurn();
}

void TcpStoreSession::OnEndOfInput() {
  if (unsent() == 0) return Close();
  state_ = State::kEnding;
  shared_.service->Disconnect(*this);
}

void TcpStoreSession::Fail(const std::string& why) {
  spdlog::warn("store: closed the connection from {}: {}", host_.to_string(), why);
  // The replies to what came before; without waiting for a client that does not take them.
  if (unsent() > 0) {
    (void)send(socket_.native_handle(), output.data() + sent_, unsent(),
               MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  Discard();  // else the kernel would end the connection with a reset
  Close();
}

bool TcpStoreSession::HasRoom() const {
  return shared_.output_bytes - counted_output_ + output.size() < shared_.options.output_bytes;
}

void TcpStoreSession::CountOutput() {
  shared_.output_bytes += output.size() - counted_output_;
  counted_output_ = output.size();
  if (shared_.output_bytes >= shared_.options.output_bytes) return;
  for (const std::shared_ptr<TcpStoreSession>& session : std::exchange(shared_.awaiting_room, {})) {
    session->AwaitTurn();
  }
}

void TcpStoreSession::CountInput() {
  const std::size_t bytes = decoder_.buffered() + held_.capacity();
  shared_.input_bytes += bytes - counted_;
  counted_ = bytes;
  if (shared_.input_bytes > shared_.options.input_bytes) {
    Fail(absl::StrCat("requests that are not complete hold ", shared_.input_bytes,
                      " bytes, the limit is ", shared_.options.input_bytes));
  }
}

}  // namespace muster::rendezvous
