#include "rendezvous/client/probes.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include "absl/strings/str_cat.h"

#include "base/safe_text.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::seconds kPatience(1);
constexpr std::size_t kShownBytes = 24;
// Whoever speaks first, such as sshd, does; a web server answers; TLS sends an alert.
constexpr std::string_view kRequest = "GET / HTTP/1.0\r\n\r\n";

// Keeps itself alive by its handlers.
class Probe : public std::enable_shared_from_this<Probe> {
 public:
  Probe(boost::asio::io_context& io, std::function<void(const std::string&)> done)
      : resolver_(io), socket_(io), timer_(io, kPatience), done_(std::move(done)) {}

  void Start(const Endpoint& endpoint) {
    timer_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error) self->End(0);
    });
    resolver_.async_resolve(endpoint.host, std::to_string(endpoint.port),
                            [self = shared_from_this()](const error_code& error,
                                                        const tcp::resolver::results_type& found) {
                              if (error) return self->End(0);
                              self->Connect(found);
                            });
  }

 private:
  void Connect(const tcp::resolver::results_type& places) {
    boost::asio::async_connect(
        socket_, places,
        [self = shared_from_this()](const error_code& error, const tcp::endpoint&) {
          if (error) return self->End(0);
          self->Ask();
        });
  }

  void Ask() {
    // What it says counts, even where it does not take the request.
    boost::asio::async_write(socket_, boost::asio::buffer(kRequest),
                             [self = shared_from_this()](const error_code&, std::size_t) {});
    socket_.async_read_some(
        boost::asio::buffer(answer_),
        [self = shared_from_this()](const error_code&, std::size_t size) { self->End(size); });
  }

  void End(std::size_t size) {
    if (done_ == nullptr) return;
    timer_.cancel();
    resolver_.cancel();
    error_code ignored;
    socket_.close(ignored);
    std::exchange(done_, nullptr)(WhatSpeaks({answer_.data(), size}));
  }

  tcp::resolver resolver_;
  tcp::socket socket_;
  boost::asio::steady_timer timer_;
  std::array<char, 64> answer_{};
  std::function<void(const std::string&)> done_;
};

// A SYN that is lost is sent again after one second.
constexpr std::chrono::seconds kLongestKnock(2);

}  // namespace

std::string WhatSpeaks(std::string_view answer) {
  if (answer.empty()) return "";
  if (answer.starts_with("HTTP/")) {
    return "it speaks HTTP, as a web server does and the page of a Muster (--http)";
  }
  if (answer.starts_with("SSH-")) return "it speaks SSH";
  // A record of type alert or handshake (RFC 8446, 5.1).
  if (answer.starts_with("\x15\x03") || answer.starts_with("\x16\x03")) return "it speaks TLS";
  const std::string_view line = answer.substr(0, answer.find_first_of("\r\n"));
  return absl::StrCat("it says \"", base::SafeLine(line, kShownBytes), "\"");
}

void ProbeListener(boost::asio::io_context& io, const Endpoint& endpoint,
                   std::function<void(const std::string& speaks)> done) {
  std::make_shared<Probe>(io, std::move(done))->Start(endpoint);
}

std::string ProbeListener(const Endpoint& endpoint) {
  boost::asio::io_context io;
  std::string found;
  ProbeListener(io, endpoint, [&](const std::string& speaks) {
    found = speaks;
    // The rest are cancelled handlers, and a name that is still looked up.
    io.stop();
  });
  io.run();
  return found;
}

// Its handlers hold it; those that are left when it was ended find no knocker.
class Prober::Call : public std::enable_shared_from_this<Call> {
 public:
  Call(Prober& prober, SessionToken session, ProbeSecret secret)
      : prober_(&prober),
        session_(std::move(session)),
        secret_(std::move(secret)),
        question_(FormatProbe(session_, nonce_)),
        socket_(prober.io_),
        patience_(prober.io_) {}

  void Begin(const tcp::endpoint& daemon) {
    patience_.expires_after(kLongestKnock);
    patience_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error) self->End();
    });
    socket_.async_connect(daemon, [self = shared_from_this()](const error_code& error) {
      error ? self->End() : self->Ask();
    });
  }

  // Nothing comes of it any more.
  void Cancel() {
    prober_ = nullptr;
    patience_.cancel();
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  void Ask() {
    if (prober_ == nullptr) return;
    boost::asio::async_write(socket_, boost::asio::buffer(question_),
                             [self = shared_from_this()](const error_code& error, std::size_t) {
                               error ? self->End() : self->Listen();
                             });
  }

  void Listen() {
    if (prober_ == nullptr) return;
    boost::asio::async_read_until(
        socket_, boost::asio::dynamic_buffer(answer_, kMaxKnockAnswer), '\n',
        [self = shared_from_this()](const error_code& error, std::size_t size) {
          if (error) return self->End();
          self->answer_.resize(size);
          self->Conclude();
        });
  }

  void Conclude() {
    Prober* const prober = prober_;
    if (prober == nullptr) return;
    End();
    const std::optional<ProbeWord> word = VerifyProbeAnswer(secret_, nonce_, answer_);
    // A copy, as it may destroy the knocker.
    const Answered tell = prober->answered_;
    if (word) tell(session_, *word, made_);
  }

  void End() {
    if (prober_ != nullptr) std::exchange(prober_, nullptr)->End(this);
    Cancel();
  }

  Prober* prober_;  // null: cancelled
  const TimePoint made_ = std::chrono::steady_clock::now();
  const ProbeNonce nonce_ = MakeProbeNonce();
  const SessionToken session_;
  const ProbeSecret secret_;
  const std::string question_;
  std::string answer_;
  tcp::socket socket_;
  boost::asio::steady_timer patience_;
};

Prober::Prober(boost::asio::io_context& io, Answered answered)
    : io_(io), answered_(std::move(answered)) {}

Prober::~Prober() {
  for (const auto& call : calls_) call->Cancel();
}

void Prober::Probe(const tcp::endpoint& daemon, const SessionToken& session,
                   const ProbeSecret& secret) {
  calls_.push_back(std::make_shared<Call>(*this, session, secret));
  calls_.back()->Begin(daemon);
}

void Prober::End(const Call* call) {
  std::erase_if(calls_, [call](const auto& other) { return other.get() == call; });
}

}  // namespace muster::rendezvous
