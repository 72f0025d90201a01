#include "rendezvous/net/relay.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace muster::rendezvous {

using boost::asio::ip::tcp;
using boost::system::error_code;

Relay::Relay(Socket connection, ByteStream& stream, std::vector<char>& buffer)
    : connection_(std::move(connection)), stream_(stream), buffer_(buffer) {
  error_code ignored;
  connection_.set_option(tcp::no_delay(true), ignored);
}

void Relay::Start() {
  stream_.Read();
  AwaitReadable();
}

void Relay::OnBytes(std::string bytes) {
  if (over_) return;
  to_give_ = std::move(bytes);
  given_ = 0;
  Give();
}

void Relay::OnEnd() {
  if (over_) return;
  error_code error;
  connection_.shutdown(tcp::socket::shutdown_send, error);
  if (error) return Break();
  end_given_ = true;
  EndIfBothHave();
}

void Relay::OnWritten() {
  if (over_) return;
  if (!said_end_) return Take();
  end_taken_ = true;
  EndIfBothHave();
}

void Relay::OnBroken() {
  if (!over_) Reset();
}

void Relay::AwaitReadable() {
  connection_.async_wait(Socket::wait_read, lifetime_.Guard([this](const error_code& error) {
    if (over_) return;
    if (error) return Break();
    Take();
  }));
}

void Relay::Take() {
  const ssize_t count =
      ::recv(connection_.native_handle(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  if (count > 0) {
    stream_.Write({buffer_.data(), static_cast<std::size_t>(count)});
  } else if (count == 0) {
    said_end_ = true;
    stream_.WriteEnd();
  } else if (errno == EAGAIN || errno == EINTR) {
    AwaitReadable();
  } else {
    Break();
  }
}

void Relay::Give() {
  while (given_ < to_give_.size()) {
    const ssize_t count = ::send(connection_.native_handle(), to_give_.data() + given_,
                                 to_give_.size() - given_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count >= 0) {
      given_ += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      connection_.async_wait(Socket::wait_write, lifetime_.Guard([this](const error_code& error) {
        if (over_) return;
        if (error) return Break();
        Give();
      }));
      return;
    } else if (errno != EINTR) {
      return Break();
    }
  }
  to_give_ = std::string();
  stream_.Read();
}

void Relay::EndIfBothHave() {
  if (!end_taken_ || !end_given_) return;
  over_ = true;
  error_code ignored;
  connection_.close(ignored);
  stream_.Finish();
}

void Relay::Break() {
  Reset();
  stream_.Abort();
}

void Relay::Reset() {
  over_ = true;
  error_code ignored;
  connection_.set_option(Socket::linger(true, 0), ignored);
  connection_.close(ignored);
}

}  // namespace muster::rendezvous
