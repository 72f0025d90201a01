#include "rendezvous/client/log_follower.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

constexpr std::chrono::milliseconds kFirstComeBack(250);
constexpr std::chrono::milliseconds kLongestComeBack(4000);

}  // namespace

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
                     ": the daemon there is of a version that cannot go on where another was")));
  }
  away_since_.reset();
  failures_ = 0;
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
  pause_.expires_after(
      has_just_broken
          ? std::chrono::milliseconds(0)
          : std::min(kLongestComeBack, kFirstComeBack * (1 << std::min(failures_++, 8))));
  pause_.async_wait(lifetime_.Guard([this](const boost::system::error_code& error) {
    if (!error) Read(read_.Rest(Clock::now() - began_));
  }));
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
        absl::StrCat(ToString(daemon_.endpoint), ": something is missing, as was said above")));
  }
  if (absl::IsNotFound(status) && away_since_) {
    return on_end(absl::NotFoundError(
        absl::StrCat(status.message(),
                     "; it has ended meanwhile, or the daemon that is there does not know it")));
  }
  on_end(status);
}

}  // namespace muster::rendezvous
