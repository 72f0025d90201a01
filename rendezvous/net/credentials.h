// How the two ends of a connection prove their identity. A value passed in where a server or a
// client is created; no other part of Muster looks inside, so securing the wire is a change here.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
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

// Copies share their state. Methods may be called on any thread.
class Credentials {
 public:
  // No proof and no encryption: for loopback, and for networks on which every host is trusted.
  static Credentials Plaintext();

  // TLS 1.3, in which each end proves to the other that it has a token (identity/authority.h). A
  // client uses the keyring's first token, as `client`; a server accepts all of them, as a daemon.
  static Credentials FromKeyring(Keyring keyring, Role client);
  static Credentials FromToken(const Token& token, Role client);

  // TLS 1.3 with certificates of a site's own authority. Every holder of one is admitted, as one
  // user with all rights; a server's must be for the name or address it is reached by.
  static Credentials FromSite(SiteCertificates certificates);

  enum class Proof { kNone, kToken, kSite };
  Proof proof() const;

  // Whether connections are encrypted and both ends authenticated.
  bool secure() const { return source_ != nullptr; }

  // The credentials of a server's ports. Certificates are renewed as connections arrive, so a
  // server may run for years, and changed tokens are read again.
  struct Server {
    std::vector<std::shared_ptr<grpc::ServerCredentials>> ports;  // at least one
    // The port for a connection whose ClientHello asks for this name (first_byte.h). Called before
    // each connection is handed over, by one thread at a time; may wait for a disk. Null: there is
    // one port.
    std::function<std::size_t(absl::string_view server_name)> port_for;
  };
  // InitGrpcRuntime (grpc_server.h) must have been called. With a gate, calls are counted and
  // refused there before anything else.
  Server ForServer(std::shared_ptr<CallGate> gate = nullptr) const;

  // Whether a server may use these credentials; else one sentence why not (for example, a site's
  // certificate is for clients only). From now on this is also checked when files are read again.
  absl::Status UseForServer() const;

  struct Client {
    std::shared_ptr<grpc::ChannelCredentials> credentials;
    // The name a server has to prove, if it is not its host's; else empty.
    std::string server_name;
  };
  // For one channel. Its certificate is new each time, issued with the current token, and valid for
  // new connections for twelve hours.
  Client ForClient() const;

  // The keys by which a server identifies its clients; null where it does not. A client that is no
  // longer among them has a token that was changed or removed since it connected.
  Keys keys() const;
  // The same, after reading changed files again: new gRPC connections trigger that by themselves.
  // May wait for a disk.
  Keys RereadKeys() const;
  // The same, only for that tenant (Keyring::NowOf).
  Keys RereadKeysOf(const std::string& tenant) const;

 private:
  struct Source;

  Credentials() = default;

  std::shared_ptr<const Source> source_;
};

}  // namespace muster::rendezvous
