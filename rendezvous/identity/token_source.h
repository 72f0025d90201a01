// Where a process is told to find the token of its rendezvous, or certificates instead of it.
#pragma once

#include <string>

#include "base/safe_path.h"

namespace muster::rendezvous {

// Files in PEM (RFC 7468).
struct CertificateFiles {
  // The authorities accepted for the other end.
  std::string ca;
  // This end's certificate, with intermediates up to the authority; and its private key.
  std::string certificate;
  std::string key;

  bool empty() const { return ca.empty() && certificate.empty() && key.empty(); }
  bool operator==(const CertificateFiles&) const = default;
};

// Environment variables in place of --token-file and --insecure.
inline constexpr char kTokenFileVariable[] = "MUSTER_TOKEN_FILE";
inline constexpr char kInsecureVariable[] = "MUSTER_INSECURE";
// And of --tls-ca, --tls-cert and --tls-key.
inline constexpr char kTlsCaVariable[] = "MUSTER_TLS_CA";
inline constexpr char kTlsCertVariable[] = "MUSTER_TLS_CERT";
inline constexpr char kTlsKeyVariable[] = "MUSTER_TLS_KEY";

// The user's choice, by flags or environment.
struct TokenSource {
  // --token-file, MUSTER_TOKEN_FILE; empty: not given.
  std::string file;
  // --token-fd: a descriptor from which the token is read once; -1: not given.
  int fd = -1;
  // --insecure, MUSTER_INSECURE=1: no token is used, and connections are not encrypted.
  bool insecure = false;
  // --tls-ca, --tls-cert, --tls-key and their variables: certificates of the site's own authority
  // instead of a token. All of them or none.
  CertificateFiles tls;
  // The user's own file: $XDG_CONFIG_HOME/muster/token, else $HOME/.config/muster/token; empty:
  // neither is possible.
  std::string own_file;
  // Where the user's processes on this machine meet. On loopback the token is in one of these
  // folders if `own_file` cannot be used: a container often has no home.
  base::UserPlace place;

  bool operator==(const TokenSource&) const = default;
};

}  // namespace muster::rendezvous
