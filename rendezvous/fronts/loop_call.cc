#include "rendezvous/fronts/loop_call.h"

#include <atomic>
#include <string>

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/server_context.h>
#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

using google::protobuf::MessageLite;
using Serialization = grpc::SerializationTraits<MessageLite>;

}  // namespace

Caller CallerOf(const grpc::ServerContextBase& call) {
  Caller caller{.peer = ParsePeer(call.peer())};
  if (const auto address = ParseHostAddress(caller.peer.address)) caller.host = HostLine(*address);
  return caller;
}

absl::Status NoLongerAllowed() {
  return absl::PermissionDeniedError("this client's token is no longer valid");
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

// gRPC's side of the call. Holds the call weakly: whoever has yet to answer it keeps it alive.
class LoopCall::Reactor final : public grpc::ServerGenericBidiReactor {
 public:
  Reactor(Shared& shared, CallGate::Pass pass) : shared_(shared), pass_(std::move(pass)) {}

  void Bind(std::weak_ptr<LoopCall> call) { call_ = std::move(call); }

  CallGate::Pass& pass() { return pass_; }

  // Before the loop knows of the call.
  void ReadEarly() {
    if (early_ = shared_.early; !early_->Begin()) early_.reset();
    if (early_) StartRead(&bytes_);
  }

  // On the loop.
  //
  // The call has been admitted, and waits for its message. True: it is there already; false: the
  // call is told when it is.
  bool Await() { return early_ && met_.exchange(true); }
  // When it is its turn.
  void Read() {
    if (early_) return;
    met_ = true;
    StartRead(&bytes_);
  }
  // How the request was read, once it has been.
  const absl::Status& read() const { return read_; }
  // Nothing else of it may be touched after these.
  void Answer(const Peer& peer, const MessageLite& response) {
    ToBytes(response, &answer_);
    AwaitTaken(peer, answer_.Length());
    StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void Refuse(const Peer& peer, const absl::Status& why) {
    AwaitTaken(peer, 0);
    Finish(ToGrpcStatus(why));
  }

 private:
  void OnReadDone(bool ok) override {
    if (early_) early_->End();
    std::shared_ptr<LoopCall> call = call_.lock();
    if (call == nullptr) return;
    read_ = ok ? ParseBytes(&bytes_, call->request_.get())
               : absl::InvalidArgumentError("the call has no message, or an incomplete one");
    // Whoever of them comes second goes on.
    if (!met_.exchange(true)) return;
    boost::asio::post(loop_, [call = std::move(call)] { call->HandleRead(); });
  }
  void OnCancel() override {
    cancelled_ = true;
    std::shared_ptr<LoopCall> call = call_.lock();
    if (call == nullptr) return;
    boost::asio::post(loop_, [call = std::move(call)] { call->Cancelled(); });
  }
  void OnDone() override {
    if (taken_) boost::asio::post(loop_, std::move(taken_));
    if (cancelled_) pass_.Linger();
    delete this;
  }

  void AwaitTaken(const Peer& peer, std::size_t bytes) {
    const UnreadResponses::Id id = shared_.untaken.Add(peer, bytes);
    taken_ = shared_.lifetime.Guard([&untaken = shared_.untaken, id] { untaken.Taken(id); });
  }

  Shared& shared_;
  boost::asio::io_context& loop_ = shared_.loop;
  CallGate::Pass pass_;
  std::weak_ptr<LoopCall> call_;
  std::shared_ptr<EarlyReads> early_;  // null: it is read when it is its turn
  bool cancelled_ = false;             // gRPC's; OnDone comes after OnCancel
  // Of the message and the loop that waits for it, one is here.
  std::atomic<bool> met_ = false;
  grpc::ByteBuffer bytes_;   // gRPC's between StartRead and OnReadDone
  absl::Status read_;        // as well
  grpc::ByteBuffer answer_;  // gRPC's from Answer on
  std::function<void()>
      taken_;  // says on the loop that the answer is; empty for a call that was dropped
};

grpc::ServerGenericBidiReactor* LoopCall::Start(Shared& shared, const Method& method,
                                                const grpc::CallbackServerContext& context,
                                                CallGate::Pass pass) {
  auto* reactor = new Reactor(shared, std::move(pass));  // deleted by OnDone
  std::shared_ptr<LoopCall> call(new LoopCall(shared, method, context, reactor));
  reactor->Bind(call);
  // First: the loop may have ended the call before anything else is done here.
  reactor->ReadEarly();
  boost::asio::post(shared.loop, [call = std::move(call)] { call->Open(); });
  return reactor;
}

LoopCall::LoopCall(Shared& shared, const Method& method, const grpc::CallbackServerContext& context,
                   Reactor* reactor)
    : shared_(shared),
      method_(method),
      context_(context),
      caller_(CallerOf(context)),
      request_(method.request->New()),
      response_(method.response->New()),
      reactor_(reactor) {}

LoopCall::~LoopCall() {
  // What the calls share may be gone.
  if (!finished()) reactor_->Finish({grpc::StatusCode::UNAVAILABLE, "the daemon is stopping"});
}

const CallGate::Pass& LoopCall::pass() const {
  return reactor_->pass();
}

void LoopCall::LeavePlace() {
  reactor_->pass().Release();
  admission_.place.reset();
}

void LoopCall::Open() {
  if (finished()) return;
  has_waited_ = false;  // since it was admitted, which it has not been yet
  absl::StatusOr<Admission> admission = method_.admit(*this);
  if (absl::IsUnavailable(admission.status()) && AwaitAdmission()) return;
  if (!admission.ok()) return Finish(admission.status());
  admission_ = *std::move(admission);
  if (reactor_->Await()) return HandleRead();
  BeginOpening();
  // What they are called for is over with the turn, which is over with this.
  turn_ = shared_.turns.Ask(
      reactor_->pass().tenant(), caller_.host, [this] { reactor_->Read(); },
      [this] {
        Finish(LimitRefusal(limits::kReadSeconds,
                            "the call's message took too long while others were waiting"));
      });
}

bool LoopCall::AwaitAdmission() {
  // It is its client's until then, who may cancel it, and the router's, which may close.
  const auto open = [call = weak_from_this()] {
    if (const auto waiting = call.lock()) waiting->Open();
  };
  if (!method_.await_admission || !method_.await_admission(*this, open)) return false;
  BeginOpening();
  return true;
}

void LoopCall::BeginOpening() {
  is_opening_ = has_waited_ = true;
  shared_.opening.insert(shared_from_this());
}

void LoopCall::EndOpening() {
  if (!std::exchange(is_opening_, false)) return;
  turn_.reset();
  shared_.opening.erase(shared_from_this());
}

void LoopCall::HandleRead() {
  EndOpening();
  if (finished()) return;
  if (const absl::Status& read = reactor_->read(); !read.ok()) return Finish(read);
  // Before anything is done for a caller that has kept its message back until now.
  if (!MayGoOn()) return Finish(NoLongerAllowed());
  has_waited_ = false;
  method_.answer(shared_from_this());
  // From here on.
  has_waited_ = true;
}

bool LoopCall::MayGoOn() const {
  return !has_waited_ || !method_.may_go_on || method_.may_go_on(*this);
}

void LoopCall::Finish(const absl::Status& given) {
  if (finished()) return;
  const absl::Status status = absl::IsCancelled(given) || MayGoOn() ? given : NoLongerAllowed();
  shared_.refused.Count(status);
  on_cancel_ = nullptr;
  admission_.place.reset();
  Reactor* const reactor = std::exchange(reactor_, nullptr);
  if (status.ok()) {
    reactor->Answer(caller_.peer, *response_);
  } else {
    reactor->Refuse(caller_.peer, status);
  }
  // May let go of the last who holds this.
  EndOpening();
}

void LoopCall::Cancelled() {
  if (finished()) return;
  const std::function<void()> on_cancel = std::exchange(on_cancel_, nullptr);
  Finish(absl::CancelledError("the client cancelled the call"));
  if (on_cancel) on_cancel();
}

absl::Status ParseBytes(grpc::ByteBuffer* bytes, MessageLite* message) {
  const bool parsed = Serialization::Deserialize(bytes, message).ok();
  bytes->Clear();
  if (parsed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the call's message is no ", message->GetTypeName()));
}

void ToBytes(const MessageLite& message, grpc::ByteBuffer* bytes) {
  bool own = false;
  // gRPC writes to an empty one alone. It fails for a message of 2 GiB.
  bytes->Clear();
  Serialization::Serialize(message, bytes, &own);
}

}  // namespace muster::rendezvous
