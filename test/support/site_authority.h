// A certificate authority as a site has one, for tests.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace muster::test {

class SiteAuthority {
 public:
  struct Leaf {
    std::string certificate;
    std::string key;
  };

  explicit SiteAuthority(const char* name)
      : name_(name), key_(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")) {
    X509* const own = Draft(name, key_, absl::Now() - absl::Hours(1), absl::Now() + absl::Hours(1));
    Extend(own, NID_basic_constraints, "critical,CA:TRUE");
    X509_sign(own, key_, nullptr);
    certificate_ = Pem(own);
    X509_free(own);
  }
  ~SiteAuthority() { EVP_PKEY_free(key_); }
  SiteAuthority(const SiteAuthority&) = delete;
  SiteAuthority& operator=(const SiteAuthority&) = delete;

  // Its own, in PEM.
  const std::string& certificate() const { return certificate_; }

  // For the names in `names`, as OpenSSL's configuration writes them: "DNS:node0,IP:127.0.0.1".
  Leaf Issue(const char* names, absl::Time from = absl::Now() - absl::Hours(1),
             absl::Time to = absl::Now() + absl::Hours(1)) const {
    return Issue(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), names, {}, from, to);
  }
  // The same of that key, which it takes, and with further extensions.
  using Extensions = std::vector<std::pair<int, const char*>>;
  Leaf Issue(EVP_PKEY* key, const char* names, const Extensions& extensions,
             absl::Time from = absl::Now() - absl::Hours(1),
             absl::Time to = absl::Now() + absl::Hours(1)) const {
    X509* const leaf = Draft("leaf", key, from, to);
    Extend(leaf, NID_subject_alt_name, names);
    for (const auto& [kind, value] : extensions) Extend(leaf, kind, value);
    X509_sign(leaf, key_, nullptr);
    Leaf result{.certificate = Pem(leaf), .key = Pem(key)};
    X509_free(leaf);
    EVP_PKEY_free(key);
    return result;
  }

 private:
  X509* Draft(const char* subject, EVP_PKEY* key, absl::Time from, absl::Time to) const {
    static long serial = 0;
    X509* const x509 = X509_new();
    X509_set_version(x509, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x509), ++serial);
    ASN1_TIME_set(X509_getm_notBefore(x509), absl::ToTimeT(from));
    ASN1_TIME_set(X509_getm_notAfter(x509), absl::ToTimeT(to));
    SetName(X509_get_subject_name(x509), subject);
    SetName(X509_get_issuer_name(x509), name_);
    X509_set_pubkey(x509, key);
    return x509;
  }
  static void SetName(X509_NAME* name, const char* text) {
    X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(text), -1, -1, 0);
  }
  static void Extend(X509* x509, int kind, const char* value) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
    X509_add_ext(x509, extension, -1);
    X509_EXTENSION_free(extension);
  }
  template <typename Write>
  static std::string Written(Write write) {
    BIO* const bio = BIO_new(BIO_s_mem());
    write(bio);
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    std::string text(data, static_cast<std::size_t>(size));
    BIO_free(bio);
    return text;
  }
  static std::string Pem(X509* x509) {
    return Written([x509](BIO* bio) { PEM_write_bio_X509(bio, x509); });
  }
  static std::string Pem(EVP_PKEY* key) {
    return Written([key](BIO* bio) {
      PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
    });
  }

  const char* const name_;
  EVP_PKEY* const key_;
  std::string certificate_;
};

}  // namespace muster::test
