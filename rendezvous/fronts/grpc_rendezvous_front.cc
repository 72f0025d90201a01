#include "rendezvous/fronts/grpc_rendezvous_front.h"

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/post.hpp>

#include "rendezvous/core/limits.h"
#include "rendezvous/core/names.h"
#include "rendezvous/fronts/loop_call.h"
#include "rendezvous/wire/peer.h"
#include "rendezvous/wire/printable.h"
#include "rendezvous/wire/wire.h"

namespace muster::rendezvous {
// One agent's stream. gRPC's callbacks run on gRPC's threads and post; the Handle methods and
// everything they touch are the loop's. It deletes itself after OnDone, which gRPC calls last.
class GrpcRendezvousFront::Stream final
    : public grpc::ServerBidiReactor<v1::AgentEvent, v1::Directive> {
 public:
  Stream(GrpcRendezvousFront& front, const grpc::CallbackServerContext& context)
      : front_(front), context_(context), peer_(ParsePeer(context.peer())) {
    boost::asio::post(front_.io_, [this] { HandleOpen(); });
    StartRead(&event_);
  }

  void OnReadDone(bool ok) override {
    boost::asio::post(front_.io_, [this, ok] { HandleRead(ok); });
  }
  void OnWriteDone(bool ok) override {
    boost::asio::post(front_.io_, [this, ok] { HandleWritten(ok); });
  }
  void OnCancel() override {
    boost::asio::post(front_.io_, [this] { HandleGone("its connection broke"); });
  }
  void OnDone() override {
    boost::asio::post(front_.io_, [self = std::unique_ptr<Stream>(this)] {});
  }

  ~Stream() override { front_.streams_.erase(this); }

  // Ends the stream, for the reason given; an agent that attends may come back on another.
  void HandleGone(const std::string& why) {
    if (state_ == State::kEnded) return;
    state_ = State::kEnded;
    connection_.reset();
    // Whoever does not attend is forgotten by that, too.
    driver_->Disconnected(agent_, why);
    driver_->Detach(agent_);
    Finish(grpc::Status::OK);
  }

 private:
  enum class State {
    kOpen,
    kRefused,  // ends when what is unsent has been written, Refused being the last an agent hears
    kEnded,    // Finish was called
  };

  void HandleOpen() {
    const absl::StatusOr<Driver*> driver = front_.access_(Rpc::kAttend, context_);
    if (!driver.ok()) {
      state_ = State::kEnded;
      Finish(ToGrpcStatus(driver.status()));
      return;
    }
    driver_ = *driver;
    front_.streams_.insert(this);
    agent_ = driver_->Attach([this](const Directive& directive) { Send(directive); });
    if (front_.ended_) HandleGone("the daemon ended");
  }

  void HandleRead(bool ok) {
    // Who was refused is not heard any more: what he goes on to send must not undo it.
    if (state_ != State::kOpen) return;
    if (!ok) return HandleGone("its connection ended");
    if (event_.ByteSizeLong() > limits::kEventBytes.most) {
      return HandleGone("it sent more than 1 MiB at once");
    }
    Take(event_);
    if (state_ != State::kEnded) StartRead(&event_);
  }

  void Take(const v1::AgentEvent& wire) {
    Event event = FromWire(wire);
    if (auto* const join = std::get_if<JoinRequest>(&event)) {
      if (join->node.address.empty()) join->node.address = peer_.address;
      // Behind a translation of addresses its workers come from where its agent comes from.
      join->node.addresses.push_back(peer_.address);
      BeginAttending(join->session);
    }
    if (const auto* const resume = std::get_if<Resume>(&event)) BeginAttending(resume->session);
    driver_->Hear(agent_, event);
    if (std::holds_alternative<Goodbye>(event)) HandleGone("it said goodbye");
  }

  void BeginAttending(const SessionToken& session) {
    session_ = session;
    if (connection_ == nullptr && front_.listener_.attending) {
      connection_ = front_.listener_.attending(peer_);
    }
  }

  // The Driver's sink.
  void Send(const Directive& directive) {
    if (state_ == State::kEnded) return;
    v1::Directive& wire = unsent_.emplace_back();
    ToWire(directive, &wire);
    if (wire.has_welcome() && front_.listener_.knock_secret) {
      wire.mutable_welcome()->set_knock_secret(front_.listener_.knock_secret(session_));
    }
    if (std::holds_alternative<Refused>(directive)) state_ = State::kRefused;
    if (unsent_.size() > limits::kUnreadDirectives.most)
      return HandleGone("it does not read what it is told");
    if (!writing_) WriteNext();
  }

  void WriteNext() {
    if (unsent_.empty()) {
      if (state_ == State::kRefused) HandleGone("it was refused");
      return;
    }
    writing_ = true;
    StartWrite(&unsent_.front());
  }

  void HandleWritten(bool ok) {
    writing_ = false;
    if (state_ == State::kEnded) return;
    unsent_.pop_front();
    if (!ok) return HandleGone("its connection broke");
    WriteNext();
  }

  GrpcRendezvousFront& front_;
  const grpc::CallbackServerContext& context_;  // until Finish
  const Peer peer_;                             // where the agent comes from
  Driver* driver_ = nullptr;  // whose jobs it may join; set before anything is heard

  AgentId agent_ = 0;
  SessionToken session_;
  std::shared_ptr<void> connection_;  // is in use
  State state_ = State::kOpen;
  bool writing_ = false;  // unsent_.front() is gRPC's
  v1::AgentEvent event_;  // gRPC's between StartRead and OnReadDone
  std::deque<v1::Directive> unsent_;
};

GrpcRendezvousFront::GrpcRendezvousFront(boost::asio::io_context& io, Access access,
                                         Listener listener)
    : io_(io), access_(std::move(access)), listener_(std::move(listener)) {}

GrpcRendezvousFront::~GrpcRendezvousFront() = default;

void GrpcRendezvousFront::EndStreams() {
  ended_ = true;
  for (Stream* stream : streams_) stream->HandleGone("the daemon ended");
}

grpc::ServerBidiReactor<v1::AgentEvent, v1::Directive>* GrpcRendezvousFront::Attend(
    grpc::CallbackServerContext* context) {
  return new Stream(*this, *context);
}

grpc::ServerUnaryReactor* GrpcRendezvousFront::Describe(grpc::CallbackServerContext* context,
                                                        const v1::DescribeRequest* request,
                                                        v1::JobDescription* response) {
  return LoopCall::Start(io_, [=, this](const std::shared_ptr<LoopCall>& call) {
    const absl::StatusOr<Driver*> driver = access_(Rpc::kDescribe, *context);
    if (!driver.ok()) return call->Finish(driver.status());
    const std::optional<JobSnapshot> job = (*driver)->Describe(request->run_id());
    if (!job) {
      call->Finish(
          absl::NotFoundError("no job '" + OneLine(request->run_id(), kMaxNameLength) + "' here"));
      return;
    }
    ToWire(*job, response);
    call->Finish(absl::OkStatus());
  });
}

grpc::ServerUnaryReactor* GrpcRendezvousFront::List(grpc::CallbackServerContext* context,
                                                    const v1::ListRequest*,
                                                    v1::ListResponse* response) {
  return LoopCall::Start(io_, [=, this](const std::shared_ptr<LoopCall>& call) {
    const absl::StatusOr<Driver*> driver = access_(Rpc::kList, *context);
    if (!driver.ok()) return call->Finish(driver.status());
    for (const JobSnapshot& job : (*driver)->List()) ToWire(job, response->add_jobs());
    call->Finish(absl::OkStatus());
  });
}

}  // namespace muster::rendezvous
