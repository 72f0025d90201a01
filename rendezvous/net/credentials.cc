#include "rendezvous/net/credentials.h"

#include <algorithm>
#include <list>
#include <optional>
#include <utility>
#include <variant>

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "rendezvous/core/values/limits.h"

namespace muster::rendezvous {
namespace {

// The tenant, for counting calls, of clients whose token is no longer valid.
constexpr char kNobody[] = "?";

// What a port presents from now on, and which authorities it accepts; nullopt: unchanged. Called
// for each connection, by one thread at a time.
using Renew = std::function<std::optional<Identity>(absl::Time now)>;

Renew RenewedBy(SiteCertificates certificates) {
  return [certificates = std::move(certificates),
          before = std::shared_ptr<const SiteCertificates::Pem>()](
             absl::Time) mutable -> std::optional<Identity> {
    auto pem = certificates.Now();
    if (pem == before) return std::nullopt;
    before = std::move(pem);
    return Identity{before->roots, before->key, before->certificate};
  };
}

// gRPC asks a port's credentials when it adds the port. gRPC's C++ classes offer neither a gate nor
// renewed certificates; the C core does.
class PortCredentials : public grpc::ServerCredentials {
 public:
  PortCredentials(std::shared_ptr<CallGate> gate, CallGate::TenantOf tenant_of)
      : gate_(std::move(gate)), tenant_of_(std::move(tenant_of)) {}

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  virtual grpc_server_credentials* Make() = 0;

  int AddPortToServer(const std::string& address, grpc_server* server) override {
    grpc_server_credentials* const credentials = Make();
    if (gate_ != nullptr) gate_->Guard(credentials, tenant_of_);
    const int port = grpc_server_add_http2_port(server, address.c_str(), credentials);
    grpc_server_credentials_release(credentials);
    return port;
  }

  const std::shared_ptr<CallGate> gate_;
  const CallGate::TenantOf tenant_of_;
};

class PlaintextServerCredentials final : public PortCredentials {
 public:
  using PortCredentials::PortCredentials;

 private:
  grpc_server_credentials* Make() override { return grpc_insecure_server_credentials_create(); }
};

// Asked for its certificate at each new connection, for as long as the server that holds this
// object accepts any.
class RenewingServerCredentials final : public PortCredentials {
 public:
  RenewingServerCredentials(Renew renew, std::shared_ptr<CallGate> gate,
                            CallGate::TenantOf tenant_of)
      : PortCredentials(std::move(gate), std::move(tenant_of)), renew_(std::move(renew)) {}

 private:
  grpc_server_credentials* Make() override {
    return grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY,
            [](void* self, grpc_ssl_server_certificate_config** config) {
              return static_cast<RenewingServerCredentials*>(self)->Fetch(config);
            },
            this));
  }

  // Runs on the thread that hands a connection to gRPC.
  grpc_ssl_certificate_config_reload_status Fetch(grpc_ssl_server_certificate_config** config) {
    const absl::MutexLock lock(&mutex_);
    const std::optional<Identity> shown = renew_(absl::Now());
    if (!shown) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair = {shown->key.c_str(), shown->certificate.c_str()};
    *config = grpc_ssl_server_certificate_config_create(shown->roots.c_str(), &pair, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  absl::Mutex mutex_;
  Renew renew_ ABSL_GUARDED_BY(mutex_);
};

// Long before an issued certificate expires.
constexpr absl::Duration kRenewAfter = absl::Hours(1);

// One more port, for clients with another token than the first: a former one, or a metrics token.
constexpr std::size_t kFewPorts = 2;

// Tenants may be added while the daemon runs, and change their tokens.
std::size_t PortsFor(const TokenKeys& keys) {
  constexpr std::size_t kLeast = 32;
  return std::clamp<std::size_t>(keys.size(), kLeast, limits::kTlsContexts.most);
}

// Chooses the TLS context for a connection, where each token has its own.
//
// gRPC creates a TLS context for each identity that a server's port presents. Each context holds,
// freshly parsed, the certificates of all authorities accepted there: with the tokens of many
// tenants on one port that is quadratic, and all of it again when one token changes. So a server
// has many ports here, none of which listens (grpc_server.h); each presents one token's identity
// and accepts only that token's authority. The client names the authority it wants before TLS
// begins (RFC 6066, 3). Changing what a port presents costs a millisecond at the next connection to
// it; established connections and other ports are not affected.
//
// An authority keeps its port as long as there are enough; then the least recently used port is
// reassigned. Port 0 serves clients that name no known authority: it presents the only user's
// identity or, where there are tenants, one that belongs to none, so that a stranger's handshake
// fails at both ends.
//
// Methods may be called by one thread at a time, and may wait for a disk.
class TlsContexts {
 public:
  explicit TlsContexts(Keyring keyring)
      : keyring_(std::move(keyring)),
        nobody_(Token::Random()),
        keys_(keyring_.Now()),
        many_(!keys_->empty() && !keys_->front().tenant.empty()),
        ports_(many_ ? PortsFor(*keys_) : kFewPorts) {
    for (std::size_t port = 1; port < ports_.size(); ++port) {
      ports_[port].turn = turns_.insert(turns_.end(), port);
    }
    if (!many_) return;
    std::size_t port = 1;
    for (const Key& key : *keys_) {
      if (port < ports_.size() && !key.metrics) Give(port++, key);
    }
  }

  // Chosen by the number of tenants at the start.
  std::size_t ports() const { return ports_.size(); }

  // The port for a connection whose client asks for this name. Reads changed tokens again.
  std::size_t PortFor(absl::string_view name) {
    const Key* key = keys_->Named(name);
    keys_ = key != nullptr ? keyring_.NowOf(key->tenant) : keyring_.Now();
    key = keys_->Named(name);
    if (key == nullptr || (!many_ && key == &keys_->front())) return 0;
    const auto found = by_name_.find(name);
    const std::size_t port = found == by_name_.end() ? turns_.front() : found->second;
    if (found == by_name_.end()) Give(port, *key);
    turns_.splice(turns_.end(), turns_, ports_[port].turn);
    return port;
  }

  // What the port presents from now on; nullopt: unchanged. Certificates are renewed long before
  // they expire.
  std::optional<Identity> Renew(std::size_t port, absl::Time now) {
    Port& at = ports_[port];
    const Authority& authority = AuthorityOf(port);
    // Also renews after the clock was set back.
    if (at.shown == authority.name() && absl::AbsDuration(now - at.issued) < kRenewAfter) {
      return std::nullopt;
    }
    at.shown = authority.name();
    at.issued = now;
    return authority.Issue(Role::kDaemon, now);
  }

 private:
  struct Port {
    std::optional<Authority> authority;  // none: that of port 0
    std::list<std::size_t>::iterator turn;
    // The authority presented, and since when.
    std::string shown;
    absl::Time issued = absl::InfinitePast();
  };

  const Authority& AuthorityOf(std::size_t port) const {
    if (ports_[port].authority) return *ports_[port].authority;
    return many_ || keys_->empty() ? nobody_ : keys_->front().authority;
  }

  void Give(std::size_t port, const Key& key) {
    std::optional<Authority>& authority = ports_[port].authority;
    if (authority) by_name_.erase(authority->name());
    authority = key.authority;
    by_name_[authority->name()] = port;
  }

  const Keyring keyring_;
  const Authority nobody_;
  Keys keys_;
  const bool many_;  // there are tenants
  std::vector<Port> ports_;
  std::list<std::size_t> turns_;  // all but port 0, least recently used first
  absl::flat_hash_map<std::string, std::size_t> by_name_;
};

}  // namespace

struct Credentials::Source {
  std::variant<Keyring, SiteCertificates> from;
  Role client;
};

Credentials Credentials::Plaintext() {
  return {};
}

Credentials Credentials::FromKeyring(Keyring keyring, Role client) {
  Credentials credentials;
  credentials.source_ = std::make_shared<const Source>(Source{std::move(keyring), client});
  return credentials;
}

Credentials Credentials::FromToken(const Token& token, Role client) {
  return FromKeyring(Keyring::Of(token), client);
}

Credentials Credentials::FromSite(SiteCertificates certificates) {
  Credentials credentials;
  credentials.source_ =
      std::make_shared<const Source>(Source{std::move(certificates), Role::kAgent});
  return credentials;
}

Credentials::Proof Credentials::proof() const {
  if (source_ == nullptr) return Proof::kNone;
  return std::holds_alternative<Keyring>(source_->from) ? Proof::kToken : Proof::kSite;
}

Credentials::Server Credentials::ForServer(std::shared_ptr<CallGate> gate) const {
  if (source_ == nullptr) {
    return {{std::make_shared<PlaintextServerCredentials>(std::move(gate), nullptr)}, nullptr};
  }
  if (const auto* const site = std::get_if<SiteCertificates>(&source_->from)) {
    return {
        {std::make_shared<RenewingServerCredentials>(RenewedBy(*site), std::move(gate), nullptr)},
        nullptr};
  }
  const CallGate::TenantOf tenant_of = [credentials = *this](absl::string_view certificate) {
    const auto principal = Keyring::Identify(*credentials.keys(), certificate);
    return principal ? principal->tenant : std::string(kNobody);
  };
  const auto contexts = std::make_shared<TlsContexts>(std::get<Keyring>(source_->from));
  Server server{{}, [contexts](absl::string_view name) { return contexts->PortFor(name); }};
  for (std::size_t port = 0; port < contexts->ports(); ++port) {
    server.ports.push_back(std::make_shared<RenewingServerCredentials>(
        [contexts, port](absl::Time now) { return contexts->Renew(port, now); }, gate, tenant_of));
  }
  return server;
}

absl::Status Credentials::UseForServer() const {
  if (proof() != Proof::kSite) return absl::OkStatus();
  return std::get<SiteCertificates>(source_->from).UseFor(CertificateUse::kServer);
}

Credentials::Client Credentials::ForClient() const {
  if (source_ == nullptr) return {grpc::InsecureChannelCredentials(), ""};
  if (const auto* const site = std::get_if<SiteCertificates>(&source_->from)) {
    const auto pem = site->Now();
    return {grpc::SslCredentials({.pem_root_certs = pem->roots,
                                  .pem_private_key = pem->key,
                                  .pem_cert_chain = pem->certificate}),
            ""};
  }
  const Keys keys = std::get<Keyring>(source_->from).Now();
  const Authority& authority = keys->front().authority;
  const Identity identity = authority.Issue(source_->client, absl::Now());
  return {grpc::SslCredentials({.pem_root_certs = identity.roots,
                                .pem_private_key = identity.key,
                                .pem_cert_chain = identity.certificate}),
          authority.name()};
}

Keys Credentials::keys() const {
  if (proof() != Proof::kToken) return nullptr;
  return std::get<Keyring>(source_->from).Known();
}

Keys Credentials::RereadKeys() const {
  if (proof() != Proof::kToken) return nullptr;
  return std::get<Keyring>(source_->from).Now();
}

Keys Credentials::RereadKeysOf(const std::string& tenant) const {
  if (proof() != Proof::kToken) return nullptr;
  return std::get<Keyring>(source_->from).NowOf(tenant);
}

}  // namespace muster::rendezvous
