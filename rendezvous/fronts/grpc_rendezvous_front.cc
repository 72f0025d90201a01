#include "rendezvous/fronts/grpc_rendezvous_front.h"

#include <chrono>
#include <deque>
#include <optional>
#include <utility>

#include <grpcpp/support/byte_buffer.h>

#include "base/async/timer.h"
#include "proto/rendezvous.pb.h"
#include "rendezvous/core/values/limits.h"
#include "rendezvous/core/values/quotas.h"
#include "rendezvous/fronts/loop_stream.h"
#include "rendezvous/wire/wire.h"

namespace muster::rendezvous {

// One agent's stream.
class GrpcRendezvousFront::Stream final : public LoopStream<v1::AgentEvent> {
 public:
  Stream(GrpcRendezvousFront& front, const grpc::CallbackServerContext& context,
         CallGate::Pass pass)
      : LoopStream(front.io_, front.router_, Rpc::kAttend, context, std::move(pass)),
        front_(front) {
    // At once: until it has joined, its connection may be taken for an idle one.
    ReadNext();
  }
  ~Stream() override { front_.streams_.erase(this); }

  // Ends the stream, for the reason given; an agent that attends may come back on another.
  void Lose(const std::string& why, const absl::Status& told = absl::OkStatus()) {
    if (ended()) return;
    why_ = why;
    End(told);
  }

 private:
  void HandleOpen() override {
    front_.streams_.insert(this);
    agent_ = daemon_loop().Attach([this](const Directive& directive) { Send(directive); });
  }
  void HandleGone() override { Lose("its connection broke"); }
  void HandleEnd(const absl::Status& status) override {
    connection_.reset();
    if (admission_.daemon_loop == nullptr) {
      router_.CountRefused(status);
    } else {
      // Whoever does not attend is forgotten by that, too.
      daemon_loop().Disconnected(agent_, why_);
      daemon_loop().Detach(agent_);
    }
    AwaitTaken();
  }

  // From now on the stream is over when its agent takes what it was told, or its connection ends.
  void AwaitTaken() {
    std::size_t bytes = 0;
    for (const grpc::ByteBuffer& directive : unsent_) bytes += directive.Length();
    LoopStream::AwaitTaken(bytes);
  }

  void HandleRead(bool ok) override {
    // Nothing more is read from a refused caller: what it goes on to send must not undo that.
    if (parting_) return;
    if (!ok) return Lose("its connection ended");
    if (in_.ByteSizeLong() > limits::kEventBytes.most) {
      router_.CountRefused(limits::kEventBytes);
      return Lose("it sent more than 1 MiB at once");
    }
    Take(in_);
    ReadAtItsPace();
  }

  // At once, or when this agent has been slow enough.
  void ReadAtItsPace() {
    if (ended()) return;
    const TimePoint next = pace_.Next(std::chrono::steady_clock::now());
    if (next <= std::chrono::steady_clock::now()) return ReadNext();
    if (!hurry_) hurry_.emplace(io_);
    hurry_->At(next, [this] {
      if (!ended()) ReadNext();
    });
  }

  void Take(const v1::AgentEvent& wire) {
    Event event = FromWire(wire);
    const bool begins =
        std::holds_alternative<JoinRequest>(event) || std::holds_alternative<Resume>(event);
    // An agent that attends stays; one that kept back its first event until its
    // token was revoked may not begin.
    if (begins && connection_ == nullptr && !MayGoOn()) {
      return Lose("its token is no longer valid", NoLongerAllowed());
    }
    if (auto* const join = std::get_if<JoinRequest>(&event)) {
      if (join->node.address.empty()) join->node.address = caller_.peer.address;
      // Behind a translation of addresses its workers come from where its agent comes from.
      join->node.addresses.push_back(caller_.peer.address);
      BeginAttending(join->session);
    }
    if (const auto* const resume = std::get_if<Resume>(&event)) BeginAttending(resume->session);
    daemon_loop().Hear(agent_, event);
    if (std::holds_alternative<Goodbye>(event)) Lose("it left");
  }

  void BeginAttending(const SessionToken& session) {
    session_ = session;
    if (connection_ == nullptr && front_.listener_.attending) {
      connection_ = front_.listener_.attending(caller_.peer);
    }
    // Agents that attend are counted as nodes.
    pass_.Release();
    admission_.place.reset();
  }

  // The DaemonLoop's sink.
  void Send(const Directive& directive) {
    if (ended()) return;
    v1::Directive wire;
    ToWire(directive, &wire);
    if (wire.has_welcome() && front_.listener_.knock_secret) {
      wire.mutable_welcome()->set_knock_secret(front_.listener_.knock_secret(session_));
    }
    if (const auto* const refused = std::get_if<Refused>(&directive)) {
      if (refused->limit != nullptr) router_.CountRefused(*refused->limit);
      parting_ = true;
      // It is no node, and is counted here until it has heard so.
      connection_.reset();
      router_.CountAgain(caller_, admission_, pass_);
      AwaitTaken();
    }
    if (std::holds_alternative<Evicted>(directive)) {
      // Until it joins again: here, or over another stream if there is no room for this one.
      connection_.reset();
      if (!router_.CountAgain(caller_, admission_, pass_)) {
        parting_ = true;
        AwaitTaken();
      }
    }
    ToBytes(wire, &unsent_.emplace_back());
    if (unsent_.size() > limits::kUnreadDirectives.most) {
      router_.CountRefused(limits::kUnreadDirectives);
      return Lose("it does not read what it is sent");
    }
    if (!writing_) WriteNext();
  }

  void WriteNext() {
    if (unsent_.empty()) {
      if (parting_) Lose("it was refused");
      return;
    }
    writing_ = true;
    StartWrite(&unsent_.front());
  }

  void HandleWritten(bool ok) override {
    writing_ = false;
    unsent_.pop_front();
    if (!ok) return Lose("its connection broke");
    WriteNext();
  }

  GrpcRendezvousFront& front_;
  AgentId agent_ = 0;
  SessionToken session_;
  std::shared_ptr<void> connection_;  // is in use
  // Ends when what is unsent has been written: it was refused, or has no place.
  bool parting_ = false;
  bool writing_ = false;  // unsent_.front() is gRPC's
  std::string why_;       // it ends
  TokenBucket pace_{static_cast<int>(limits::kEventsInASecond.most),
                    static_cast<int>(limits::kEventsAtOnce.most)};
  std::optional<base::Timer> hurry_;  // of one that has more to say than it may
  std::deque<grpc::ByteBuffer> unsent_;
};

GrpcRendezvousFront::GrpcRendezvousFront(boost::asio::io_context& io, RpcRouter& router,
                                         Listener listener)
    : io_(io), router_(router), listener_(std::move(listener)) {
  router.ServeStream(Rpc::kAttend,
                     [this](const grpc::CallbackServerContext& context, CallGate::Pass pass) {
                       return Stream::Open<Stream>(*this, context, std::move(pass));
                     });
  router.Serve<v1::DescribeRequest, v1::JobDescription>(
      Rpc::kDescribe, [](DaemonLoop& daemon_loop, const std::shared_ptr<LoopCall>& call,
                         const v1::DescribeRequest& request, v1::JobDescription* response) {
        const absl::StatusOr<JobSnapshot> job = daemon_loop.Describe(request.run_id());
        if (!job.ok()) return call->Finish(job.status());
        ToWire(*job, response);
        call->Finish(absl::OkStatus());
      });
  router.Serve<v1::ListRequest, v1::ListResponse>(
      Rpc::kList, [](DaemonLoop& daemon_loop, const std::shared_ptr<LoopCall>& call,
                     const v1::ListRequest&, v1::ListResponse* response) {
        const absl::StatusOr<std::vector<JobSnapshot>> jobs = daemon_loop.List();
        if (!jobs.ok()) return call->Finish(jobs.status());
        for (const JobSnapshot& job : *jobs) ToWire(job, response->add_jobs());
        const auto clock = std::chrono::system_clock::now().time_since_epoch();
        response->set_clock_ms(
            std::chrono::duration_cast<std::chrono::milliseconds>(clock).count());
        call->Finish(absl::OkStatus());
      });
}

void GrpcRendezvousFront::EndStreams() {
  // Each leaves the set when gRPC is done with it, on the loop.
  for (Stream* stream : streams_) stream->Lose("the daemon stopped");
}

}  // namespace muster::rendezvous
