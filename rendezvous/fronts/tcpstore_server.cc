#include "rendezvous/fronts/tcpstore_server.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

namespace muster::rendezvous {

using boost::asio::ip::address;

TcpStoreAllowList::TcpStoreAllowList(const std::optional<std::vector<std::string>>& addresses) {
  if (!addresses) return;
  allowed_.emplace();
  for (const std::string& text : *addresses) {
    if (const std::optional<address> parsed = ParseHostAddress(text)) allowed_->insert(*parsed);
  }
}

bool TcpStoreAllowList::Allows(const address& given) const {
  return !allowed_ || allowed_->contains(HostAddress(given));
}

namespace {

using boost::asio::ip::tcp;

constexpr std::size_t kReadBytes = 64 << 10;

// Limits that fit together: a single value must be able to come and to go.
TcpStoreOptions Consistent(TcpStoreOptions options) {
  const std::size_t largest = options.limits.key_bytes + 2 * options.limits.value_bytes + 64;
  options.request_bytes = std::max(options.request_bytes, largest);
  options.output_limit_bytes =
      std::max(options.output_limit_bytes, options.output_pause_bytes + largest);
  return options;
}

}  // namespace

TcpStoreServer::TcpStoreServer(boost::asio::io_context& loop, const TcpStoreOptions& options)
    : options_(Consistent(options)),
      shared_{.loop = loop,
              .options = options_,
              .decode_limits = {.key_bytes = options_.limits.key_bytes,
                                .value_bytes = options_.limits.value_bytes,
                                .keys_per_request = options_.keys_per_request,
                                .request_bytes = options_.request_bytes},
              .on_closed =
                  [this](TcpStoreSession& session) {
                    sessions_.erase(&session);
                    acceptor_.Resume();
                  }},
      own_users_(options_.for_other_users),
      flood_guard_(loop, "store", [this] { return acceptor_.listening_fds(); }),
      acceptor_(
          loop,
          [this](tcp::socket connection, const boost::asio::ip::address& peer) {
            flood_guard_.Accepted(connection, peer);
            if (!StartSession(std::move(connection))) flood_guard_.Failed(peer);
          },
          [this] { return sessions_.size() < options_.connections; }) {
  shared_.read_buffer.resize(kReadBytes);
  Reset();
}

TcpStoreServer::~TcpStoreServer() {
  Close();
}

absl::Status TcpStoreServer::Serve(int listening_fd) {
  return acceptor_.Serve(listening_fd);
}

void TcpStoreServer::Adopt(tcp::socket connection) {
  if (sessions_.size() >= options_.connections) {
    ++refused_;
    return;
  }
  fcntl(connection.native_handle(), F_SETFD, FD_CLOEXEC);
  StartSession(std::move(connection));
}

void TcpStoreServer::AllowOnly(const std::optional<std::vector<std::string>>& addresses) {
  allowed_ = TcpStoreAllowList(addresses);
  std::vector<std::shared_ptr<TcpStoreSession>> unwanted;
  for (const auto& [key, session] : sessions_) {
    if (!allowed_.Allows(session->host())) unwanted.push_back(session);
  }
  for (const auto& session : unwanted) session->Close();
}

void TcpStoreServer::Reset() {
  CloseSessions();
  shared_.service = std::make_unique<TcpStoreService>(options_.limits, options_.output_limit_bytes);
  shared_.hint = DialectHint(options_.legacy_dialect);
}

void TcpStoreServer::Close() {
  acceptor_.Close();
  CloseSessions();
}

void TcpStoreServer::CloseSessions() {
  while (!sessions_.empty()) {
    const std::shared_ptr<TcpStoreSession> session = sessions_.begin()->second;
    session->Close();
  }
}

bool TcpStoreServer::StartSession(tcp::socket connection) {
  if (options_.own_user_only && !own_users_.Allow(connection)) {
    ++refused_;
    return false;
  }
  auto session = std::make_shared<TcpStoreSession>(std::move(connection), shared_);
  if (!allowed_.Allows(session->host())) {
    ++refused_;
    return false;
  }
  session->Start();
  sessions_.emplace(session.get(), std::move(session));
  return true;
}

}  // namespace muster::rendezvous
