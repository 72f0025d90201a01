// The private certificate authority that follows from a token: whoever has the token can issue
// certificates, and tell those that were issued with it from all others. Nobody has to run it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rendezvous/identity/token.h"

namespace muster::rendezvous {

// What a process is, which its certificate says. A token gives all roles to whoever has it, except
// a metrics token (Token::ForMetrics), which gives that one alone.
enum class Role {
  kDaemon,   // musterd, or an agent that hosts its job's rendezvous; nobody's client
  kAgent,    // one node of a job
  kTool,     // `muster status` and `muster kv`
  kMetrics,  // who may look at jobs, and at nothing in their stores
};

// "daemon", "agent", "tool", "metrics".
absl::string_view NameOf(Role role);

// What one end of a TLS connection needs, in PEM (RFC 7468).
struct Identity {
  std::string roots;        // the certificates of those whose word is taken for the other end
  std::string key;          // the private key, PKCS #8
  std::string certificate;  // and what certifies it

  // Overwrites the key.
  ~Identity();
};

// Its key is Ed25519 (RFC 8032), derived from the token by HKDF-SHA256 (RFC 5869) with a label that
// has a version. All its methods may be called on any thread. Nothing is derived before the first
// of them is, so that one which nobody asks costs nothing.
class Authority {
 public:
  explicit Authority(const Token& token);

  // What may be known of it by anybody: "muster-" and 16 hexadecimal digits of its public key's
  // hash. The name of the issuer in certificates, and the name that a server proves to clients.
  const std::string& name() const;

  // Its own certificate, in PEM: the same wherever and whenever it is made.
  const std::string& certificate() const;

  // A fresh key with a certificate that says what its holder is: Ed25519, from twelve hours before
  // `now` to twelve hours after, as the clocks of nodes may differ. A server proves name() with it
  // (a DNS name), a client its role ("muster:agent", a URI).
  Identity Issue(Role role, absl::Time now) const;

  // What the holder of this certificate, in PEM, may say he is; nullopt: this authority has not
  // signed it, or it is no client's. Whether it has expired is not looked at.
  std::optional<Role> RoleOf(absl::string_view certificate) const;

 private:
  // What follows from the token.
  struct Derived;

  // With the key and the name; and with the certificate, too.
  const Derived& derived() const;
  const Derived& certified() const;

  std::shared_ptr<Derived> derived_;
};

}  // namespace muster::rendezvous
