#include "rendezvous/client/in_process_client.h"

#include <chrono>
#include <utility>

#include <boost/asio/post.hpp>

namespace muster::rendezvous {
namespace {

class InProcessDelivery final : public LogDelivery {
 public:
  InProcessDelivery(boost::asio::io_context& io, DaemonLoop& daemon_loop, LogDeliveryId id,
                    Handlers handlers)
      : io_(io), daemon_loop_(daemon_loop), id_(id), handlers_(std::move(handlers)) {
    // From the loop, as with directives.
    open_ = daemon_loop_.logs().OpenDelivery(id, {.read = [this] { Post(&Handlers::on_ready); },
                                                  .end =
                                                      [this] {
                                                        open_ = false;
                                                        Post(&Handlers::on_over);
                                                      }});
    if (!open_) Post(&Handlers::on_over);
  }
  ~InProcessDelivery() override {
    if (open_) daemon_loop_.logs().Ended(id_, absl::UnavailableError("its agent ended meanwhile"));
  }

  void Send(LogPart part) override {
    if (open_) daemon_loop_.logs().Brought(id_, std::move(part));
  }
  void Finish() override {
    if (!std::exchange(open_, false)) return;
    daemon_loop_.logs().Ended(id_, absl::OkStatus());
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
  DaemonLoop& daemon_loop_;
  const LogDeliveryId id_;
  const Handlers handlers_;
  bool open_ = false;
  const base::Lifetime lifetime_;
};

}  // namespace

InProcessClient::InProcessClient(boost::asio::io_context& io, DaemonLoop& daemon_loop,
                                 Listener& listener)
    : io_(io), daemon_loop_(daemon_loop), listener_(listener), progress_timer_(io) {
  agent_ = daemon_loop_.Attach([this](const Directive& directive) {
    // From the loop, so that the listener is never called from inside its own call.
    boost::asio::post(io_,
                      lifetime_.Guard([this, directive] { listener_.OnDirective(directive); }));
  });
}

InProcessClient::~InProcessClient() {
  if (agent_ == 0) return;
  daemon_loop_.Detach(agent_);
  daemon_loop_.Disconnected(agent_, "its agent ended");
}

void InProcessClient::Join(const JoinRequest& request) {
  JoinRequest without_lease = request;
  without_lease.settings.lease = Duration::zero();
  daemon_loop_.Hear(agent_, without_lease);
}

void InProcessClient::Say(Event event) {
  if (auto* exited = std::get_if<WorkersExited>(&event)) {
    TellLost(agent_);
    exited->failed_ago = FailedAgo(listener_, exited->outcome, std::chrono::steady_clock::now());
  }
  daemon_loop_.Hear(agent_, event);
}

void InProcessClient::TellLost(AgentId agent) {
  const std::uint64_t lost = listener_.LogBytesLost();
  if (lost > 0) daemon_loop_.Hear(agent, KeepAlive{.log_bytes_lost = lost});
}

std::unique_ptr<LogDelivery> InProcessClient::DeliverLog(std::uint64_t delivery,
                                                         LogDelivery::Handlers handlers) {
  return std::make_unique<InProcessDelivery>(io_, daemon_loop_, delivery, std::move(handlers));
}

void InProcessClient::ProgressMade() {
  if (progress_timer_.waits()) return;
  // As often as over a network.
  progress_timer_.After(std::chrono::seconds(1), [this] {
    daemon_loop_.Hear(agent_, KeepAlive{.progress = listener_.TakeProgress(/*all=*/false)});
  });
}

void InProcessClient::Leave(const std::string& reason, std::function<void()> left) {
  const AgentId agent = std::exchange(agent_, 0);
  lifetime_.End();
  TellLost(agent);
  progress_timer_.Cancel();
  daemon_loop_.Detach(agent);
  daemon_loop_.Hear(agent, Goodbye{reason});
  boost::asio::post(io_, std::move(left));
}

}  // namespace muster::rendezvous
