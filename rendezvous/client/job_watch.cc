#include "rendezvous/client/job_watch.h"

#include <utility>

#include <grpcpp/channel.h>

#include "absl/strings/str_cat.h"

#include "base/text.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/net/client_stream.h"
#include "rendezvous/wire/wire.h"

namespace muster::rendezvous {
namespace {

constexpr int kMaxUpdateBytes = 256 << 20;

// Whether to ask again could lead to another answer.
bool MayComeBack(const grpc::Status& status, const DaemonOptions& daemon) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return ReadConnectionError(status, daemon.credentials.proof()).kind !=
             ConnectionError::Kind::kForeign;
    // The daemon has cut us off, or its host has gone; or there are too many who watch.
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return true;
    default:
      return false;
  }
}

}  // namespace

JobWatch::JobWatch(boost::asio::io_context& io, DaemonOptions daemon, std::string run_id,
                   Listener& listener)
    : io_(io),
      daemon_(std::move(daemon)),
      run_id_(std::move(run_id)),
      listener_(listener),
      timer_(io) {
  Connect();
}

JobWatch::~JobWatch() = default;

// A new connection for each attempt: the old one may be the very thing that is wrong.
void JobWatch::Connect() {
  answers_ = false;
  stream_ = ClientStream<void, v1::WatchUpdate>::Make(io_);
  v1::WatchRequest request;
  request.set_run_id(run_id_);
  v1::Rendezvous::NewStub(OpenChannel(ChannelTarget(FindLeader(daemon_.endpoint, daemon_.patience)),
                                      daemon_.credentials, {.max_message_bytes = kMaxUpdateBytes}))
      ->async()
      ->Watch(&stream_->context(), &request, stream_.get());
  // A loop that is busy is told later, and what has changed meanwhile at once.
  stream_->Start({.on_read = [this](const v1::WatchUpdate& wire) { HandleUpdate(wire); },
                  .on_done = [this](const grpc::Status& status) { HandleDone(status); }});
  timer_.After(daemon_.patience, [this] {
    stream_.reset();
    const absl::Status why = absl::UnavailableError(absl::StrCat(
        ToString(daemon_.endpoint), ": no answer within ", base::Seconds(daemon_.patience)));
    if (!has_answered_) return listener_.OnOver(why);
    Fail(why);
  });
}

void JobWatch::HandleUpdate(const v1::WatchUpdate& wire) {
  timer_.Cancel();
  has_answered_ = answers_ = true;
  backoff_.Reset();
  WatchedJobs watched{.unchanged = wire.unchanged()};
  for (const v1::JobDescription& job : wire.jobs()) watched.jobs.push_back(FromWire(job));
  for (const v1::JobEnd& end : wire.ended()) watched.ended.push_back(FromWire(end));
  listener_.OnJobs(watched);
}

void JobWatch::HandleDone(const grpc::Status& status) {
  stream_.reset();
  timer_.Cancel();
  if (status.ok()) return listener_.OnOver(absl::OkStatus());
  const absl::Status why = ExplainFailure(status, daemon_);
  if (!has_answered_ || !MayComeBack(status, daemon_)) return listener_.OnOver(why);
  Fail(why);
}

void JobWatch::Fail(const absl::Status& why) {
  // One that was cut off after an answer is made again at once: the daemon may be there.
  const std::chrono::milliseconds pause = backoff_.Next();
  timer_.After(answers_ ? std::chrono::milliseconds(0) : pause, [this] { Connect(); });
  listener_.OnOutOfTouch(std::string(why.message()));
}

}  // namespace muster::rendezvous
