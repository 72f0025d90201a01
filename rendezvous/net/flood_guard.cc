#include "rendezvous/net/flood_guard.h"

#include <chrono>
#include <utility>

#include <spdlog/spdlog.h>

#include "rendezvous/net/host_address.h"
#include "rendezvous/net/syn_filter.h"

namespace muster::rendezvous {
namespace {

using std::chrono::steady_clock;

// So that a flood does not fill the log as well.
constexpr std::chrono::minutes kTellEvery(1);

}  // namespace

FloodGuard::FloodGuard(boost::asio::io_context& io, const char* name, Sockets sockets,
                       FloodLimits limits)
    : name_(name), sockets_(std::move(sockets)), floods_(limits), release_(io) {}

void FloodGuard::Accepted(const boost::asio::ip::tcp::socket& connection, const Address& peer) {
  boost::system::error_code error;
  const auto local = connection.local_endpoint(error);
  const Address host = HostAddress(peer);
  // With any pair of this machine's addresses, as 127.0.0.1 reaches what listens at 127.0.0.2.
  if (!error && (host.is_loopback() || HostAddress(local.address()) == host)) Known(host);
}

void FloodGuard::Failed(const Address& peer) {
  const TimePoint now = steady_clock::now();
  const Address host = HostAddress(peer);
  if (!floods_.Failed(HostLine(host), now)) return;
  const bool kept_away = Apply();
  if (told_ != TimePoint{} && now - told_ < kTellEvery) return;
  told_ = now;
  spdlog::warn("{}: {} opens connections that come to nothing, one after the other; {}", name_,
               host.to_string(),
               kept_away ? "it may open some in a second from now on, as any host that does this"
                         : "this kernel lets only an administrator keep it away (CAP_NET_ADMIN)");
}

void FloodGuard::Known(const Address& peer) {
  if (floods_.Known(HostLine(HostAddress(peer)))) Apply();
}

bool FloodGuard::Apply() {
  std::vector<Address> hosts;
  for (const auto& [host, until] : floods_.barred()) hosts.push_back(host);
  AwaitRelease();
  return DropSynsFrom(hosts, sockets_());
}

void FloodGuard::AwaitRelease() {
  const std::optional<TimePoint> next = floods_.next_release();
  if (awaits_release_ || !next) return;
  awaits_release_ = true;
  release_.expires_at(*next);
  release_.async_wait(lifetime_.Guard([this](const boost::system::error_code&) {
    awaits_release_ = false;
    if (floods_.Release(steady_clock::now())) Apply();
    AwaitRelease();
  }));
}

}  // namespace muster::rendezvous
