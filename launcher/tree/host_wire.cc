#include "launcher/tree/host_wire.h"

#include <algorithm>
#include <cstddef>

#include "rendezvous/wire/printable.h"

namespace muster::launcher {
namespace {

constexpr std::size_t kMaxNewsReason = 1024;
constexpr std::size_t kMaxEndpoint = 300;

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

}  // namespace muster::launcher
