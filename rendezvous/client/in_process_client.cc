#include "rendezvous/client/in_process_client.h"

#include <chrono>
#include <utility>

#include <boost/asio/post.hpp>

namespace muster::rendezvous {
namespace {

class InProcessDelivery final : public LogDelivery {
 public:
  InProcessDelivery(boost::asio::io_context& io, Driver& driver, LogDeliveryId id,
                    Handlers handlers)
      : io_(io), driver_(driver), id_(id), handlers_(std::move(handlers)) {
    // From the loop, as with directives.
    open_ = driver_.logs().OpenDelivery(id, {.read = [this] { Post(&Handlers::on_ready); },
                                             .end =
                                                 [this] {
                                                   open_ = false;
                                                   Post(&Handlers::on_over);
                                                 }});
    if (!open_) Post(&Handlers::on_over);
  }
  ~InProcessDelivery() override {
    if (open_) driver_.logs().Ended(id_, absl::UnavailableError("its agent ended meanwhile"));
  }

  void Send(LogPart part) override {
    if (open_) driver_.logs().Brought(id_, std::move(part));
  }
  void Finish() override {
    if (!std::exchange(open_, false)) return;
    driver_.logs().Ended(id_, absl::OkStatus());
    Post(&Handlers::on_over);
  }

 private:
  void Post(std::function<void()> Handlers::*handler) {
    boost::asio::post(io_, lifetime_.Guard([this, handler] {
      // A copy, as it may destroy this.
      const std::function<void()> call = handlers_.*handler;
      call();
    }));
  }

  boost::asio::io_context& io_;
  Driver& driver_;
  const LogDeliveryId id_;
  const Handlers handlers_;
  bool open_ = false;
  const base::Lifetime lifetime_;
};

}  // namespace

InProcessClient::InProcessClient(boost::asio::io_context& io, Driver& driver, Listener& listener)
    : io_(io), driver_(driver), listener_(listener), progress_timer_(io) {
  agent_ = driver_.Attach([this](const Directive& directive) {
    // From the loop, so that the listener is never called from inside its own call.
    boost::asio::post(io_,
                      lifetime_.Guard([this, directive] { listener_.OnDirective(directive); }));
  });
}

InProcessClient::~InProcessClient() {
  if (agent_ == 0) return;
  driver_.Detach(agent_);
  driver_.Disconnected(agent_, "its agent ended");
}

void InProcessClient::Join(const JoinRequest& request) {
  JoinRequest without_lease = request;
  without_lease.settings.lease = Duration::zero();
  driver_.Hear(agent_, without_lease);
}

void InProcessClient::WorkersStarted(RoundId round) {
  driver_.Hear(agent_, rendezvous::WorkersStarted{round});
}

void InProcessClient::WorkersExited(RoundId round, const WorkersOutcome& outcome) {
  TellLost(agent_);
  driver_.Hear(
      agent_, rendezvous::WorkersExited{
                  round, outcome, FailedAgo(listener_, outcome, std::chrono::steady_clock::now())});
}

void InProcessClient::TellLost(AgentId agent) {
  const std::uint64_t lost = listener_.LogBytesLost();
  if (lost > 0) driver_.Hear(agent, KeepAlive{.log_bytes_lost = lost});
}

std::unique_ptr<LogDelivery> InProcessClient::DeliverLog(std::uint64_t delivery,
                                                         LogDelivery::Handlers handlers) {
  return std::make_unique<InProcessDelivery>(io_, driver_, delivery, std::move(handlers));
}

void InProcessClient::ProgressMade() {
  if (std::exchange(tells_progress_, true)) return;
  // As often as over a network.
  progress_timer_.expires_after(std::chrono::seconds(1));
  progress_timer_.async_wait(lifetime_.Guard([this](const boost::system::error_code& error) {
    if (error) return;
    tells_progress_ = false;
    driver_.Hear(agent_, KeepAlive{.progress = listener_.TakeProgress(/*all=*/false)});
  }));
}

void InProcessClient::Leaving(const std::string& reason) {
  driver_.Hear(agent_, rendezvous::Leaving{reason});
}

void InProcessClient::AskToLeave(RoundId round, const std::string& reason) {
  driver_.Hear(agent_, rendezvous::AskToLeave{round, reason});
}

void InProcessClient::Leave(const std::string& reason, std::function<void()> left) {
  const AgentId agent = std::exchange(agent_, 0);
  lifetime_.End();
  TellLost(agent);
  progress_timer_.cancel();
  driver_.Detach(agent);
  driver_.Hear(agent, Goodbye{reason});
  boost::asio::post(io_, std::move(left));
}

}  // namespace muster::rendezvous
