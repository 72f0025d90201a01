#include "launcher/agent/log_deliveries.h"

#include <utility>
#include <variant>

#include <boost/asio/post.hpp>

#include "launcher/agent/log_reading.h"
#include "rendezvous/client/log_delivery.h"

namespace muster::launcher {

// One reader.
class LogDeliveries::Delivery {
 public:
  Delivery(boost::asio::io_context& io, LogReading reading, std::uint64_t wanted,
           rendezvous::RendezvousClient& client, std::function<void()> on_over)
      : io_(io), reading_(std::move(reading)) {
    reading_.WatchNews([this] { HearNews(); });
    delivery_ = client.DeliverLog(
        wanted, {.on_ready = [this] { SendNext(); }, .on_over = std::move(on_over)});
  }

 private:
  void SendNext() {
    LogReading::Next next = reading_.Take();
    if (auto* const part = std::get_if<rendezvous::LogPart>(&next)) {
      return delivery_->Send(std::move(*part));
    }
    if (std::holds_alternative<LogReading::All>(next)) return delivery_->Finish();
    waits_ = true;
  }

  // In the middle of a worker's output: what follows has its own turn.
  void HearNews() {
    if (!std::exchange(waits_, false)) return;
    boost::asio::post(io_, lifetime_.Guard([this] { SendNext(); }));
  }

  boost::asio::io_context& io_;
  LogReading reading_;
  std::unique_ptr<rendezvous::LogDelivery> delivery_;
  bool waits_ = false;  // for something to send
  const base::Lifetime lifetime_;
};

LogDeliveries::LogDeliveries(boost::asio::io_context& io, std::string host)
    : io_(io), host_(std::move(host)), limit_(io) {}

LogDeliveries::~LogDeliveries() = default;

void LogDeliveries::Begin(const rendezvous::LogWanted& wanted, const KeptLogs& kept,
                          rendezvous::RendezvousClient& client) {
  if (kept.IsToCome(wanted.round)) return early_.push_back(wanted);
  const std::uint64_t id = next_++;
  deliveries_[id] = std::make_unique<Delivery>(
      io_, LogReading(wanted, kept.Find(wanted.round), host_, std::chrono::steady_clock::now()),
      wanted.delivery, client, [this, id] { End(id); });
}

void LogDeliveries::OnRoundBegun(const KeptLogs& kept, rendezvous::RendezvousClient& client) {
  for (const rendezvous::LogWanted& wanted : std::exchange(early_, {})) {
    Begin(wanted, kept, client);
  }
}

void LogDeliveries::End(std::uint64_t id) {
  deliveries_.erase(id);
  if (deliveries_.empty() && done_) TellDone();
}

void LogDeliveries::WhenDone(std::chrono::milliseconds limit, std::function<void()> done) {
  done_ = std::move(done);
  if (deliveries_.empty()) return TellDone();
  limit_.expires_after(limit);
  limit_.async_wait(lifetime_.Guard([this](const boost::system::error_code& error) {
    if (error || !done_) return;
    deliveries_.clear();
    TellDone();
  }));
}

void LogDeliveries::TellDone() {
  limit_.cancel();
  boost::asio::post(io_, std::exchange(done_, nullptr));
}

}  // namespace muster::launcher
