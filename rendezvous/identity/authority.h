// The private certificate authority derived from a token: the token's holders can issue
// certificates and recognize one another's. No server is needed.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rendezvous/identity/token.h"

struct x509_st;  // OpenSSL's X509

namespace muster::rendezvous {

// What a process is, as its certificate says. A token gives its holder all roles, except a metrics
// token (Token::ForMetrics), which gives only that one.
enum class Role {
  kDaemon,   // musterd, or an agent that hosts its job's rendezvous; never a client
  kAgent,    // one node of a job
  kTool,     // `muster status` and `muster kv`
  kMetrics,  // may look at jobs, but not at their stores
};

// "daemon", "agent", "tool", "metrics".
absl::string_view NameOf(Role role);

// What one end of a TLS connection needs, in PEM (RFC 7468).
struct Identity {
  std::string roots;        // certificates of the authorities accepted for the other end
  std::string key;          // the private key, PKCS #8
  std::string certificate;  // and the certificate chain

  // Overwrites the key.
  ~Identity();
};

// A certificate presented by the other end of a connection, parsed once: parsing costs as much as
// checking it against dozens of authorities. Copies share their state; thread-safe.
class ShownCertificate {
 public:
  // From PEM. Malformed text has no issuer.
  explicit ShownCertificate(absl::string_view pem);

  // The Authority::name() of the issuer it claims, which proves nothing; empty: none.
  const std::string& issuer() const { return issuer_; }

 private:
  friend class Authority;

  std::shared_ptr<x509_st> certificate_;  // null: malformed
  std::string issuer_;
};

// Its key is Ed25519 (RFC 8032), derived from the token by HKDF-SHA256 (RFC 5869) with a versioned
// label. Methods may be called on any thread. Nothing is derived before the first call, so an
// unused one costs nothing.
class Authority {
 public:
  explicit Authority(const Token& token);

  // Its public identity: "muster-" and 16 hexadecimal digits of its public key's hash. The issuer's
  // name in certificates, and the name that a server proves to clients.
  const std::string& name() const;

  // Its own certificate, in PEM; always the same for the same token.
  const std::string& certificate() const;

  // A fresh key with a certificate for its holder's role: Ed25519, valid from twelve hours before
  // `now` to twelve hours after, as nodes' clocks may differ. With it a server proves name() (a DNS
  // name), and a client its role ("muster:agent", a URI).
  Identity Issue(Role role, absl::Time now) const;

  // The role this certificate gives its holder; nullopt: not signed by this authority, or not a
  // client's. Expiry is not checked.
  std::optional<Role> RoleOf(const ShownCertificate& certificate) const;

 private:
  // What is derived from the token.
  struct Derived;

  // Key and name; and the certificate as well.
  const Derived& derived() const;
  const Derived& certified() const;

  std::shared_ptr<Derived> derived_;
};

}  // namespace muster::rendezvous
