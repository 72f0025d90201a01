#include "rendezvous/fronts/grpc_rendezvous_front.h"

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <grpcpp/support/byte_buffer.h>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/lifetime.h"
#include "proto/rendezvous.pb.h"
#include "rendezvous/core/limits.h"
#include "rendezvous/core/names.h"
#include "rendezvous/core/pace.h"
#include "rendezvous/fronts/loop_call.h"
#include "rendezvous/fronts/message_bytes.h"
#include "rendezvous/wire/peer.h"
#include "rendezvous/wire/printable.h"
#include "rendezvous/wire/wire.h"

namespace muster::rendezvous {
// One agent's stream. gRPC's callbacks run on gRPC's threads and post; the Handle methods and
// everything they touch are the loop's. It deletes itself after OnDone, which gRPC calls last.
class GrpcRendezvousFront::Stream final : public grpc::ServerGenericBidiReactor {
 public:
  Stream(GrpcRendezvousFront& front, const grpc::CallbackServerContext& context,
         CallGate::Pass pass)
      : front_(front), context_(context), pass_(std::move(pass)), caller_(CallerOf(context)) {
    boost::asio::post(front_.io_, [this] { HandleOpen(); });
    // At once: until it has joined, its connection may be taken for an idle one.
    StartRead(&read_);
  }

  void OnReadDone(bool ok) override {
    const bool heard = ok && ParseBytes(&read_, &event_).ok();
    boost::asio::post(front_.io_, [this, heard] { HandleRead(heard); });
  }
  void OnWriteDone(bool ok) override {
    boost::asio::post(front_.io_, [this, ok] { HandleWritten(ok); });
  }
  void OnCancel() override {
    cancelled_ = true;
    boost::asio::post(front_.io_, [this] { HandleGone("its connection broke"); });
  }
  void OnDone() override {
    boost::asio::post(front_.io_, [self = std::unique_ptr<Stream>(this)] {});
  }

  ~Stream() override {
    front_.streams_.erase(this);
    if (untaken_) front_.entrance_.untaken().Taken(*untaken_);
    if (cancelled_) pass_.Linger();
  }

  // Ends the stream, for the reason given; an agent that attends may come back on another.
  void HandleGone(const std::string& why) {
    if (state_ == State::kEnded) return;
    state_ = State::kEnded;
    connection_.reset();
    // Whoever does not attend is forgotten by that, too.
    admission_.driver->Disconnected(agent_, why);
    admission_.driver->Detach(agent_);
    AwaitTaken();
    Finish(grpc::Status::OK);
  }

 private:
  enum class State {
    kOpen,
    kParting,  // ends when what is unsent has been written: it was refused, or has no place
    kEnded,    // Finish was called
  };

  void HandleOpen() {
    absl::StatusOr<Admission> admission =
        front_.entrance_.Admit(Rpc::kAttend, context_, caller_, pass_);
    if (!admission.ok()) {
      state_ = State::kEnded;
      front_.entrance_.CountRefused(admission.status());
      AwaitTaken();
      Finish(ToGrpcStatus(admission.status()));
      return;
    }
    admission_ = *std::move(admission);
    front_.streams_.insert(this);
    agent_ = admission_.driver->Attach([this](const Directive& directive) { Send(directive); });
  }

  // From now on the stream is over when its agent takes what it was told, or its connection ends.
  void AwaitTaken() {
    if (untaken_) return;
    std::size_t bytes = 0;
    for (const grpc::ByteBuffer& directive : unsent_) bytes += directive.Length();
    untaken_ = front_.entrance_.untaken().Add(caller_.peer, bytes);
  }

  void HandleRead(bool ok) {
    // Who was refused is not heard any more: what he goes on to send must not undo it.
    if (state_ != State::kOpen) return;
    if (!ok) return HandleGone("its connection ended");
    if (event_.ByteSizeLong() > limits::kEventBytes.most) {
      front_.entrance_.CountRefused(limits::kEventBytes);
      return HandleGone("it sent more than 1 MiB at once");
    }
    Take(event_);
    ReadNext();
  }

  // At once, or when this agent has been slow enough.
  void ReadNext() {
    if (state_ == State::kEnded) return;
    const TimePoint next = pace_.Next(std::chrono::steady_clock::now());
    if (next <= std::chrono::steady_clock::now()) return StartRead(&read_);
    if (!hurry_) hurry_.emplace(front_.io_);
    hurry_->expires_at(next);
    // It may be over and on its way when this stream's end is, which then comes first.
    hurry_->async_wait(lifetime_.Guard([this](const boost::system::error_code& cancelled) {
      if (!cancelled && state_ != State::kEnded) StartRead(&read_);
    }));
  }

  void Take(const v1::AgentEvent& wire) {
    Event event = FromWire(wire);
    if (auto* const join = std::get_if<JoinRequest>(&event)) {
      if (join->node.address.empty()) join->node.address = caller_.peer.address;
      // Behind a translation of addresses its workers come from where its agent comes from.
      join->node.addresses.push_back(caller_.peer.address);
      BeginAttending(join->session);
    }
    if (const auto* const resume = std::get_if<Resume>(&event)) BeginAttending(resume->session);
    admission_.driver->Hear(agent_, event);
    if (std::holds_alternative<Goodbye>(event)) HandleGone("it said goodbye");
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

  // The Driver's sink.
  void Send(const Directive& directive) {
    if (state_ == State::kEnded) return;
    v1::Directive wire;
    ToWire(directive, &wire);
    if (wire.has_welcome() && front_.listener_.knock_secret) {
      wire.mutable_welcome()->set_knock_secret(front_.listener_.knock_secret(session_));
    }
    if (const auto* const refused = std::get_if<Refused>(&directive)) {
      if (refused->limit != nullptr) front_.entrance_.CountRefused(*refused->limit);
      state_ = State::kParting;
      // It is no node, and is counted here until it has heard so.
      connection_.reset();
      front_.entrance_.CountAgain(caller_, admission_, pass_);
      AwaitTaken();
    }
    if (std::holds_alternative<Evicted>(directive)) {
      // Until it joins again: here, or over another stream if there is no room for this one.
      connection_.reset();
      if (!front_.entrance_.CountAgain(caller_, admission_, pass_)) {
        state_ = State::kParting;
        AwaitTaken();
      }
    }
    ToBytes(wire, &unsent_.emplace_back());
    if (unsent_.size() > limits::kUnreadDirectives.most) {
      front_.entrance_.CountRefused(limits::kUnreadDirectives);
      return HandleGone("it does not read what it is told");
    }
    if (!writing_) WriteNext();
  }

  void WriteNext() {
    if (unsent_.empty()) {
      if (state_ == State::kParting) HandleGone("it was refused");
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
  CallGate::Pass pass_;                         // counts until it attends
  const Caller caller_;                         // where the agent comes from
  Admission admission_;     // set before anything is heard; its place as the pass
  bool cancelled_ = false;  // gRPC's; OnDone comes after OnCancel

  AgentId agent_ = 0;
  SessionToken session_;
  std::shared_ptr<void> connection_;  // is in use
  State state_ = State::kOpen;
  bool writing_ = false;   // unsent_.front() is gRPC's
  grpc::ByteBuffer read_;  // gRPC's between StartRead and OnReadDone, and so is what it says
  v1::AgentEvent event_;
  Pace pace_{static_cast<int>(limits::kEventsInASecond.most),
             static_cast<int>(limits::kEventsAtOnce.most)};
  std::optional<boost::asio::steady_timer> hurry_;  // of one that has more to say than it may
  std::deque<grpc::ByteBuffer> unsent_;
  std::optional<UntakenAnswers::Id> untaken_;  // once it ends
  const base::Lifetime lifetime_;
};

GrpcRendezvousFront::GrpcRendezvousFront(boost::asio::io_context& io, CallEntrance& entrance,
                                         Listener listener)
    : io_(io), entrance_(entrance), listener_(std::move(listener)) {
  entrance.ServeStream(Rpc::kAttend,
                       [this](const grpc::CallbackServerContext& context, CallGate::Pass pass) {
                         return new Stream(*this, context, std::move(pass));
                       });
  entrance.Serve<v1::DescribeRequest, v1::JobDescription>(
      Rpc::kDescribe, [](Driver& driver, const std::shared_ptr<LoopCall>& call,
                         const v1::DescribeRequest& request, v1::JobDescription* response) {
        const absl::StatusOr<JobSnapshot> job = driver.Describe(request.run_id());
        if (!job.ok()) return call->Finish(job.status());
        ToWire(*job, response);
        call->Finish(absl::OkStatus());
      });
  entrance.Serve<v1::ListRequest, v1::ListResponse>(
      Rpc::kList, [](Driver& driver, const std::shared_ptr<LoopCall>& call, const v1::ListRequest&,
                     v1::ListResponse* response) {
        const absl::StatusOr<std::vector<JobSnapshot>> jobs = driver.List();
        if (!jobs.ok()) return call->Finish(jobs.status());
        for (const JobSnapshot& job : *jobs) ToWire(job, response->add_jobs());
        const auto clock = std::chrono::system_clock::now().time_since_epoch();
        response->set_clock_ms(
            std::chrono::duration_cast<std::chrono::milliseconds>(clock).count());
        call->Finish(absl::OkStatus());
      });
}

GrpcRendezvousFront::~GrpcRendezvousFront() = default;

void GrpcRendezvousFront::EndStreams() {
  // Each leaves the set when gRPC is done with it, on the loop.
  for (Stream* stream : streams_) stream->HandleGone("the daemon ended");
}

}  // namespace muster::rendezvous
