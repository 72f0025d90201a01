// How the two ends of a connection prove who they are. A value that is handed in where a server or
// a client is made; nothing else in Muster knows what it holds, so that securing the wire is a
// change here.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/identity/authority.h"
#include "rendezvous/identity/keyring.h"
#include "rendezvous/identity/site_certificates.h"
#include "rendezvous/identity/token.h"
#include "rendezvous/net/call_gate.h"

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace muster::rendezvous {

// Copies share what they hold. Its methods may be called on any thread.
class Credentials {
 public:
  // No proof and no encryption: for loopback, and for networks whose every host is trusted.
  static Credentials Plaintext();

  // TLS 1.3, in which each end proves to the other that it has a token (identity/authority.h). A
  // client proves the first of the keyring's, as `client`; a server takes all of them, and is a
  // daemon.
  static Credentials FromKeyring(Keyring keyring, Role client);
  static Credentials FromToken(const Token& token, Role client);

  // TLS 1.3 with certificates of a site's own authority. Whoever has one is let in, as one user
  // with all rights; a server's has to be for the name or the address by which it is reached.
  static Credentials FromSite(SiteCertificates certificates);

  enum class Proof { kNone, kToken, kSite };
  Proof proof() const;

  // Whether connections are encrypted and both ends proven.
  bool secure() const { return source_ != nullptr; }

  // For InitGrpcRuntime (grpc_runtime.h) to have been called. The certificates that a server shows
  // are renewed as it takes connections, so it may run for years, and tokens that have been changed
  // are read again. With a gate, calls are counted and refused there before anything else.
  std::shared_ptr<grpc::ServerCredentials> ForServer(
      std::shared_ptr<CallGate> gate = nullptr) const;

  struct Client {
    std::shared_ptr<grpc::ChannelCredentials> credentials;
    // The name that a server has to prove, where that is not its host's; else empty.
    std::string server_name;
  };
  // For one channel: its certificate, a new one each time and made with the token of the time, is
  // good for twelve hours of new connections.
  Client ForClient() const;

  // The keys by which a server knows its clients; null where it knows nobody. Whoever is not among
  // them any more has a token that was changed or taken away since it connected.
  Keys keys() const;
  // The same, once files that have changed are read again: new connections of gRPC's see to that by
  // themselves. May wait for a disk.
  Keys RereadKeys() const;

 private:
  struct Source;

  Credentials() = default;

  std::shared_ptr<const Source> source_;
};

}  // namespace muster::rendezvous
