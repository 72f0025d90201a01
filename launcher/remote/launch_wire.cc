#include "launcher/remote/launch_wire.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "rendezvous/core/values/phrases.h"
#include "worker/output/pseudo_terminal.h"

namespace muster::launcher {
namespace {

constexpr std::size_t kMaxNewsReason = 1024;
constexpr std::size_t kMaxEndpoint = 300;

constexpr std::size_t kHeader = 4;

}  // namespace

Host ToHost(const launch::v1::Host& message) {
  Host host{.name = message.name(), .user = message.user(), .workers = {}};
  if (message.workers() > 0) host.workers = message.workers();
  return host;
}

launch::v1::Host ToMessage(const Host& host, HostIndex index) {
  launch::v1::Host message;
  message.set_index(index);
  message.set_name(host.name);
  message.set_user(host.user);
  message.set_workers(host.workers.value_or(0));
  return message;
}

FanOut::Charge ToCharge(const launch::v1::Host& message) {
  return {.host = message.index(),
          .failures = std::clamp(message.failures(), 0, 1000),
          .told_unreachable = message.told_unreachable()};
}

launch::v1::News ToMessage(const HostNews& news) {
  launch::v1::News message;
  message.set_host(news.host);
  message.set_what(static_cast<launch::v1::News::What>(news.what));
  message.set_reason(rendezvous::OneLine(news.reason, kMaxNewsReason));
  message.set_exit_code(news.exit_code);
  message.set_endpoint(news.endpoint);
  return message;
}

HostNews ToNews(const launch::v1::News& message) {
  const int what =
      std::clamp(static_cast<int>(message.what()), 0, static_cast<int>(HostNews::What::kEnded));
  return {.host = message.host(),
          .what = static_cast<HostNews::What>(what),
          .reason = rendezvous::OneLine(message.reason(), kMaxNewsReason),
          .exit_code = message.exit_code() & 0xff,
          .endpoint = rendezvous::OneLine(message.endpoint(), kMaxEndpoint)};
}

std::string ToFrame(absl::string_view message) {
  const auto size = static_cast<std::uint32_t>(message.size());
  std::string frame;
  frame.reserve(kHeader + message.size());
  for (int shift = 24; shift >= 0; shift -= 8) frame += static_cast<char>(size >> shift & 0xff);
  frame.append(message.data(), message.size());
  return frame;
}

absl::Status FrameReader::FindGreeting() {
  const std::size_t found = bytes_.find(kGreeting.data(), 0, kGreeting.size());
  if (found != std::string::npos) {
    noise_.append(bytes_, 0, found);
    bytes_.erase(0, found + kGreeting.size());
    greeted_ = true;
    return absl::OkStatus();
  }
  // Keep what may be the start of a greeting.
  if (bytes_.size() >= kGreeting.size()) {
    const std::size_t surely = bytes_.size() - kGreeting.size() + 1;
    noise_.append(bytes_, 0, surely);
    bytes_.erase(0, surely);
  }
  if (noise_.size() <= kMaxNoise) return absl::OkStatus();
  return absl::InvalidArgumentError("what answers there is not Muster");
}

absl::StatusOr<std::optional<std::string>> FrameReader::Next() {
  if (!greeted_) {
    const absl::Status status = FindGreeting();
    if (!status.ok()) return status;
    if (!greeted_) return std::nullopt;
  }
  std::uint32_t size = 0;
  if (bytes_.size() - begin_ >= kHeader) {
    for (std::size_t i = 0; i < kHeader; ++i) {
      size = size << 8 | static_cast<unsigned char>(bytes_[begin_ + i]);
    }
    if (size > limit_) {
      return absl::InvalidArgumentError(
          absl::StrCat("a frame of ", size, " bytes, where ", limit_, " are the most"));
    }
  }
  if (bytes_.size() - begin_ < kHeader + size || bytes_.size() - begin_ < kHeader) {
    bytes_.erase(0, begin_);
    begin_ = 0;
    return std::nullopt;
  }
  std::string message = bytes_.substr(begin_ + kHeader, size);
  begin_ += kHeader + size;
  return message;
}

launch::v1::Terminals TerminalsHere() {
  launch::v1::Terminals terminals;
  const auto set = [](const worker::WindowSize& size, launch::v1::WindowSize& message) {
    message.set_rows(size.rows);
    message.set_columns(size.columns);
  };
  if (const auto size = worker::ReadWindowSize(STDOUT_FILENO)) set(*size, *terminals.mutable_out());
  if (const auto size = worker::ReadWindowSize(STDERR_FILENO)) set(*size, *terminals.mutable_err());
  return terminals;
}

void AddTerminals(launch::v1::Job& job, const Environment& own) {
  launch::v1::Terminals terminals = TerminalsHere();
  if (!terminals.has_out() && !terminals.has_err()) return;
  *job.mutable_terminals() = std::move(terminals);
  for (const char* const name : {"TERM", "COLORTERM"}) {
    const std::string prefix = absl::StrCat(name, "=");
    const bool is_set = std::any_of(
        job.environment().begin(), job.environment().end(),
        [&](const std::string& variable) { return absl::StartsWith(variable, prefix); });
    const auto found = own.find(name);
    if (!is_set && found != own.end()) job.add_environment(absl::StrCat(prefix, found->second));
  }
}

}  // namespace muster::launcher
