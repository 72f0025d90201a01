#include "rendezvous/net/credentials.h"

#include <utility>
#include <vector>

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

namespace muster::rendezvous {
namespace {

// Long before one that was issued expires.
constexpr absl::Duration kRenewAfter = absl::Hours(1);

// gRPC's own SslServerCredentials show one certificate for ever; in the C core there are others
// that ask for each new connection, and no C++ class for them.
class RenewingServerCredentials final : public grpc::ServerCredentials {
 public:
  explicit RenewingServerCredentials(Keyring keyring) : keyring_(std::move(keyring)) {}

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  // gRPC takes a port's credentials when it adds the port, and asks for as long as the server that
  // holds this object takes connections.
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    grpc_server_credentials* const credentials = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY,
            [](void* self, grpc_ssl_server_certificate_config** config) {
              return static_cast<RenewingServerCredentials*>(self)->Fetch(config);
            },
            this));
    const int port = grpc_server_add_http2_port(server, address.c_str(), credentials);
    grpc_server_credentials_release(credentials);
    return port;
  }

  // On one of gRPC's threads.
  grpc_ssl_certificate_config_reload_status Fetch(grpc_ssl_server_certificate_config** config) {
    const absl::Time now = absl::Now();
    const Keys keys = keyring_.Now();
    // The last tenant is gone: what was shown before stays, and every call is refused.
    if (keys->empty()) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    {
      const absl::MutexLock lock(&mutex_);
      // A clock that was set back counts, too.
      if (keys == shown_ && absl::AbsDuration(now - issued_) < kRenewAfter) {
        return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
      }
      issued_ = now;
      shown_ = keys;
    }
    std::string roots;
    std::vector<Identity> identities;
    std::vector<grpc_ssl_pem_key_cert_pair> pairs;
    identities.reserve(keys->size());
    for (const Key& key : *keys) {
      const Identity& identity = identities.emplace_back(key.authority.Issue(Role::kDaemon, now));
      roots += identity.roots;
      pairs.push_back({identity.key.c_str(), identity.certificate.c_str()});
    }
    // Which one is shown depends on the name that the client asks for (RFC 6066, 3).
    *config = grpc_ssl_server_certificate_config_create(roots.c_str(), pairs.data(), pairs.size());
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const Keyring keyring_;
  absl::Mutex mutex_;
  absl::Time issued_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  Keys shown_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

struct Credentials::Source {
  Keyring keyring;
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

std::shared_ptr<grpc::ServerCredentials> Credentials::ForServer() const {
  if (source_ == nullptr) return grpc::InsecureServerCredentials();
  return std::make_shared<RenewingServerCredentials>(source_->keyring);
}

Credentials::Client Credentials::ForClient() const {
  if (source_ == nullptr) return {grpc::InsecureChannelCredentials(), ""};
  const Keys keys = source_->keyring.Now();
  const Authority& authority = keys->front().authority;
  const Identity identity = authority.Issue(source_->client, absl::Now());
  return {grpc::SslCredentials({.pem_root_certs = identity.roots,
                                .pem_private_key = identity.key,
                                .pem_cert_chain = identity.certificate}),
          authority.name()};
}

Keys Credentials::keys() const {
  return source_ == nullptr ? nullptr : source_->keyring.Known();
}

}  // namespace muster::rendezvous
