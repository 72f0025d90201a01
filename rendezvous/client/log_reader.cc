#include "rendezvous/client/log_reader.h"

#include <utility>

#include <grpcpp/channel.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/net/client_stream.h"
#include "rendezvous/wire/worker_wire.h"

namespace muster::rendezvous {
namespace {

// How a Muster daemon answers a call that it does not know (RpcRouter).
bool IsOldDaemon(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNIMPLEMENTED &&
         absl::StartsWith(status.error_message(), "there is no call");
}

absl::Status ExplainEnd(const grpc::Status& status, const DaemonOptions& daemon) {
  if (status.ok()) return absl::OkStatus();
  if (IsOldDaemon(status)) {
    return absl::FailedPreconditionError(absl::StrCat(
        ToString(daemon.endpoint), ": that daemon's version does not support logs; update it"));
  }
  return ExplainFailure(status, daemon);
}

}  // namespace

LogReader::LogReader(boost::asio::io_context& io, const DaemonOptions& daemon,
                     const LogRequest& request, Handlers handlers)
    : stream_(ClientStream<void, v1::LogPart>::Make(io)) {
  v1::LogRequest wire;
  ToWire(request, &wire);
  v1::Rendezvous::NewStub(
      OpenChannel(ChannelTarget(FindLeader(daemon.endpoint, daemon.patience)), daemon.credentials))
      ->async()
      ->ReadLog(&stream_->context(), &wire, stream_.get());
  stream_->Start({.on_read = [on_part = std::move(handlers.on_part)](
                                 v1::LogPart& part) { on_part(FromWire(std::move(part))); },
                  .on_done = [daemon, on_end = std::move(handlers.on_end)](
                                 const grpc::Status& end) { on_end(ExplainEnd(end, daemon)); }});
}

LogReader::~LogReader() = default;

void LogReader::Pause() {
  stream_->Pause();
}

void LogReader::Resume() {
  stream_->Resume();
}

LogFollower::LogFollower(boost::asio::io_context& io, DaemonOptions daemon, LogRequest request,
                         std::chrono::milliseconds comes_back_for, Handlers handlers)
    : io_(io),
      daemon_(std::move(daemon)),
      request_(request),
      comes_back_for_(comes_back_for),
      handlers_(std::move(handlers)),
      read_(std::move(request)),
      pause_(io) {
  Read(request_);
}

void LogFollower::Read(const LogRequest& request) {
  reader_.emplace(
      io_, daemon_, request,
      LogReader::Handlers{.on_part = [this](const LogPart& part) { Take(part); },
                          .on_end = [this](const absl::Status& status) { OnReadEnd(status); }});
}

void LogFollower::Take(const LogPart& part) {
  const auto* const round = std::get_if<LogRound>(&part);
  // A daemon that does not say in which life of the job it is has begun from the start.
  if (away_since_ && round != nullptr && round->incarnation == 0) {
    return End(absl::UnavailableError(
        absl::StrCat(ToString(daemon_.endpoint),
                     ": that daemon's version cannot resume where another left off")));
  }
  away_since_.reset();
  backoff_.Reset();
  if (!read_.Take(part)) return;
  // It may destroy this.
  const auto on_part = handlers_.on_part;
  on_part(part);
}

void LogFollower::OnReadEnd(const absl::Status& status) {
  reader_.reset();
  const Clock::time_point now = Clock::now();
  const bool is_over = away_since_ && now - *away_since_ >= comes_back_for_;
  if (is_over || !MayComeBack(status)) return End(status);
  const bool has_just_broken = !away_since_.has_value();
  if (has_just_broken) away_since_ = now;
  pause_.After(has_just_broken ? std::chrono::milliseconds(0) : backoff_.Next(),
               [this] { Read(read_.Rest(Clock::now() - began_)); });
  if (!has_just_broken) return;
  const auto on_outage = handlers_.on_outage;
  on_outage(std::string(status.message()));
}

bool LogFollower::MayComeBack(const absl::Status& status) const {
  if (!request_.extent.follow || !read_.can_go_on()) return false;
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    // The daemon has cut us off, or its host has gone.
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      return true;
    // By readers whom the daemon has not yet noticed to be gone.
    case absl::StatusCode::kResourceExhausted:
      return away_since_.has_value();
    default:
      return false;
  }
}

void LogFollower::End(const absl::Status& status) {
  reader_.reset();
  const auto on_end = handlers_.on_end;
  if (status.ok() && read_.is_incomplete()) {
    return on_end(absl::DataLossError(
        absl::StrCat(ToString(daemon_.endpoint), ": some output is missing, as noted above")));
  }
  if (absl::IsNotFound(status) && away_since_) {
    return on_end(absl::NotFoundError(absl::StrCat(
        status.message(), "; it has ended meanwhile, or the daemon there does not know it")));
  }
  on_end(status);
}

}  // namespace muster::rendezvous
