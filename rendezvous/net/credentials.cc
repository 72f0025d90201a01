#include "rendezvous/net/credentials.h"

#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <openssl/crypto.h>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

namespace muster::rendezvous {
namespace {

// Long before one that was issued expires.
constexpr absl::Duration kRenewAfter = absl::Hours(1);

// The tenant, as far as calls are counted, of who has a token that no longer counts.
constexpr char kNobody[] = "?";

// What a server shows, and whose word it takes.
struct Shown {
  std::string roots;
  // Key and certificate. Which one is shown depends on the name that the client asks for (RFC 6066,
  // 3).
  std::vector<std::pair<std::string, std::string>> pairs;

  ~Shown() {
    for (auto& [key, certificate] : pairs) OPENSSL_cleanse(key.data(), key.size());
  }
};

// What it is at a time: null when that has not changed since the last call. Called by one thread at
// a time.
using ShownAt = std::function<std::unique_ptr<const Shown>(absl::Time now)>;

ShownAt ShownBy(Keyring keyring) {
  return [keyring = std::move(keyring), before = Keys(),
          issued = absl::InfinitePast()](absl::Time now) mutable -> std::unique_ptr<const Shown> {
    Keys keys = keyring.Now();
    // The last tenant is gone: what was shown before stays, and every call is refused.
    if (keys->empty()) return nullptr;
    // A clock that was set back counts, too.
    if (keys == before && absl::AbsDuration(now - issued) < kRenewAfter) return nullptr;
    issued = now;
    before = std::move(keys);
    auto shown = std::make_unique<Shown>();
    for (const Key& key : *before) {
      const Identity identity = key.authority.Issue(Role::kDaemon, now);
      shown->roots += identity.roots;
      shown->pairs.emplace_back(identity.key, identity.certificate);
    }
    return shown;
  };
}

ShownAt ShownBy(SiteCertificates certificates) {
  return [certificates = std::move(certificates),
          before = std::shared_ptr<const SiteCertificates::Pem>()](
             absl::Time) mutable -> std::unique_ptr<const Shown> {
    auto pem = certificates.Now();
    if (pem == before) return nullptr;
    before = std::move(pem);
    auto shown = std::make_unique<Shown>();
    shown->roots = before->roots;
    shown->pairs.emplace_back(before->key, before->certificate);
    return shown;
  };
}

// gRPC asks a port's credentials when it adds the port. Its own classes for C++ offer neither a
// gate nor certificates that are renewed; the C core does.
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
// object takes any.
class RenewingServerCredentials final : public PortCredentials {
 public:
  RenewingServerCredentials(ShownAt shown_at, std::shared_ptr<CallGate> gate,
                            CallGate::TenantOf tenant_of)
      : PortCredentials(std::move(gate), std::move(tenant_of)), shown_at_(std::move(shown_at)) {}

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

  // On one of gRPC's threads.
  grpc_ssl_certificate_config_reload_status Fetch(grpc_ssl_server_certificate_config** config) {
    const absl::MutexLock lock(&mutex_);
    const std::unique_ptr<const Shown> shown = shown_at_(absl::Now());
    if (shown == nullptr) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    std::vector<grpc_ssl_pem_key_cert_pair> pairs;
    for (const auto& [key, certificate] : shown->pairs) {
      pairs.push_back({key.c_str(), certificate.c_str()});
    }
    *config =
        grpc_ssl_server_certificate_config_create(shown->roots.c_str(), pairs.data(), pairs.size());
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  absl::Mutex mutex_;
  ShownAt shown_at_ ABSL_GUARDED_BY(mutex_);
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

std::shared_ptr<grpc::ServerCredentials> Credentials::ForServer(
    std::shared_ptr<CallGate> gate) const {
  if (source_ == nullptr) {
    return std::make_shared<PlaintextServerCredentials>(std::move(gate), nullptr);
  }
  CallGate::TenantOf tenant_of;
  if (proof() == Proof::kToken) {
    tenant_of = [credentials = *this](absl::string_view certificate) {
      const auto principal = Keyring::Identify(*credentials.keys(), certificate);
      return principal ? principal->tenant : std::string(kNobody);
    };
  }
  return std::visit(
      [&](const auto& from) -> std::shared_ptr<grpc::ServerCredentials> {
        return std::make_shared<RenewingServerCredentials>(ShownBy(from), std::move(gate),
                                                           std::move(tenant_of));
      },
      source_->from);
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

}  // namespace muster::rendezvous
