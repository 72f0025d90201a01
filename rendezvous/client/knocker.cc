#include "rendezvous/client/knocker.h"

#include <chrono>
#include <optional>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

// A SYN that is lost is sent again after one second.
constexpr std::chrono::seconds kLongestKnock(2);

}  // namespace

// Its handlers hold it; those that are left when it was ended find no knocker.
class Knocker::Call : public std::enable_shared_from_this<Call> {
 public:
  Call(Knocker& knocker, SessionToken session, KnockSecret secret)
      : knocker_(&knocker),
        session_(std::move(session)),
        secret_(std::move(secret)),
        question_(FormatKnock(session_, nonce_)),
        socket_(knocker.io_),
        patience_(knocker.io_) {}

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
    knocker_ = nullptr;
    patience_.cancel();
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  void Ask() {
    if (knocker_ == nullptr) return;
    boost::asio::async_write(socket_, boost::asio::buffer(question_),
                             [self = shared_from_this()](const error_code& error, std::size_t) {
                               error ? self->End() : self->Listen();
                             });
  }

  void Listen() {
    if (knocker_ == nullptr) return;
    boost::asio::async_read_until(
        socket_, boost::asio::dynamic_buffer(answer_, kMaxKnockAnswer), '\n',
        [self = shared_from_this()](const error_code& error, std::size_t size) {
          if (error) return self->End();
          self->answer_.resize(size);
          self->Conclude();
        });
  }

  void Conclude() {
    Knocker* const knocker = knocker_;
    if (knocker == nullptr) return;
    End();
    const std::optional<KnockWord> word = VerifyKnockAnswer(secret_, nonce_, answer_);
    // A copy, as it may destroy the knocker.
    const Answered tell = knocker->answered_;
    if (word) tell(session_, *word, made_);
  }

  void End() {
    if (knocker_ != nullptr) std::exchange(knocker_, nullptr)->End(this);
    Cancel();
  }

  Knocker* knocker_;  // null: cancelled
  const TimePoint made_ = Clock::now();
  const KnockNonce nonce_ = MakeKnockNonce();
  const SessionToken session_;
  const KnockSecret secret_;
  const std::string question_;
  std::string answer_;
  tcp::socket socket_;
  boost::asio::steady_timer patience_;
};

Knocker::Knocker(boost::asio::io_context& io, Answered answered)
    : io_(io), answered_(std::move(answered)) {}

Knocker::~Knocker() {
  for (const auto& call : calls_) call->Cancel();
}

void Knocker::Knock(const tcp::endpoint& daemon, const SessionToken& session,
                    const KnockSecret& secret) {
  calls_.push_back(std::make_shared<Call>(*this, session, secret));
  calls_.back()->Begin(daemon);
}

void Knocker::End(const Call* call) {
  std::erase_if(calls_, [call](const auto& other) { return other.get() == call; });
}

}  // namespace muster::rendezvous
