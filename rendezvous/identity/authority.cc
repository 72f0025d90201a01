#include "rendezvous/identity/authority.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <utility>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>

#include "absl/base/call_once.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "rendezvous/identity/openssl_ptr.h"

namespace muster::rendezvous {
namespace {

using ExtensionPtr = std::unique_ptr<X509_EXTENSION, OpensslFreer<X509_EXTENSION_free>>;
using NamePtr = std::unique_ptr<X509_NAME, OpensslFreer<X509_NAME_free>>;

// A change to the derivation, or to what certificates mean, needs a new label, which this version
// does not understand.
constexpr absl::string_view kLabel = "muster authority v1";

constexpr absl::Duration kClockDifference = absl::Hours(12);
constexpr absl::Duration kLife = absl::Hours(12);

// OpenSSL fails here only when out of memory.
template <typename T>
T Sure(T result) {
  if (!result) std::abort();
  return result;
}

KeyPtr DeriveKey(const Token& token) {
  std::array<unsigned char, 32> seed = Derive(token.bytes(), kLabel);
  KeyPtr key(
      Sure(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size())));
  OPENSSL_cleanse(seed.data(), seed.size());
  return key;
}

// Of Ed25519, both the private and the public one.
using KeyBytes = std::array<unsigned char, 32>;

KeyBytes PublicKey(EVP_PKEY* key) {
  KeyBytes bytes;
  std::size_t size = bytes.size();
  Sure(EVP_PKEY_get_raw_public_key(key, bytes.data(), &size) == 1 && size == bytes.size());
  return bytes;
}

std::string NameFor(EVP_PKEY* key) {
  const KeyBytes bytes = PublicKey(key);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> hash;
  Sure(EVP_Q_digest(nullptr, "SHA256", nullptr, bytes.data(), bytes.size(), hash.data(), nullptr) ==
       1);
  constexpr std::size_t kShown = 8;
  return absl::StrCat("muster-",
                      absl::BytesToHexString({reinterpret_cast<const char*>(hash.data()), kShown}));
}

template <typename Write>
std::string Pem(Write write) {
  const BioPtr bio(Sure(BIO_new(BIO_s_secmem())));
  Sure(write(bio.get()) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<std::size_t>(size));
}

std::string PemOf(X509* certificate) {
  return Pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

// Like PEM_write_bio_PKCS8PrivateKey, which first tries each of OpenSSL's encoders: half a
// millisecond, where a node's whole start takes a few.
std::string PemOf(EVP_PKEY* key) {
  // The PKCS #8 header before the key's bytes (RFC 8410, 7).
  constexpr std::array<unsigned char, 16> kBefore = {0x30, 0x2e, 0x02, 0x01, 0x00, 0x30,
                                                     0x05, 0x06, 0x03, 0x2b, 0x65, 0x70,
                                                     0x04, 0x22, 0x04, 0x20};
  std::array<unsigned char, kBefore.size() + KeyBytes().size()> der;
  std::copy(kBefore.begin(), kBefore.end(), der.begin());
  std::size_t size = KeyBytes().size();
  Sure(EVP_PKEY_get_raw_private_key(key, der.data() + kBefore.size(), &size) == 1 &&
       size == KeyBytes().size());
  std::string pem = Pem([&](BIO* bio) {
    return PEM_write_bio(bio, PEM_STRING_PKCS8INF, "", der.data(), der.size()) > 0;
  });
  OPENSSL_cleanse(der.data(), der.size());
  return pem;
}

// Like X509_set_pubkey, which encodes the key and decodes it again with OpenSSL's generic
// machinery: a third of a millisecond.
void SetPublicKey(X509* certificate, EVP_PKEY* key) {
  const KeyBytes bytes = PublicKey(key);
  auto* const copy = static_cast<unsigned char*>(Sure(OPENSSL_memdup(bytes.data(), bytes.size())));
  // Takes over the copy.
  Sure(X509_PUBKEY_set0_param(X509_get_X509_PUBKEY(certificate), OBJ_nid2obj(NID_ED25519),
                              V_ASN1_UNDEF, nullptr, copy, static_cast<int>(bytes.size())) == 1);
}

NamePtr CommonName(absl::string_view text) {
  NamePtr name(Sure(X509_NAME_new()));
  Sure(X509_NAME_add_entry_by_NID(name.get(), NID_commonName, MBSTRING_ASC,
                                  reinterpret_cast<const unsigned char*>(text.data()),
                                  static_cast<int>(text.size()), -1, 0) == 1);
  return name;
}

// For a name made by CommonName; empty for any other.
std::string SoleCommonName(const X509_NAME* name) {
  if (X509_NAME_entry_count(name) != 1) return "";
  const X509_NAME_ENTRY* const entry = X509_NAME_get_entry(name, 0);
  if (OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry)) != NID_commonName) return "";
  const ASN1_STRING* const text = X509_NAME_ENTRY_get_data(entry);
  return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                     static_cast<std::size_t>(ASN1_STRING_length(text)));
}

// An unsigned certificate.
CertificatePtr Draft(absl::string_view subject, absl::string_view issuer, EVP_PKEY* key,
                     std::uint64_t serial, absl::Time from, absl::Time to) {
  CertificatePtr certificate(Sure(X509_new()));
  X509* const x509 = certificate.get();
  Sure(X509_set_version(x509, X509_VERSION_3) == 1);
  Sure(ASN1_INTEGER_set_uint64(X509_get_serialNumber(x509), serial) == 1);
  Sure(ASN1_TIME_set(X509_getm_notBefore(x509), absl::ToTimeT(from)));
  Sure(ASN1_TIME_set(X509_getm_notAfter(x509), absl::ToTimeT(to)));
  Sure(X509_set_subject_name(x509, CommonName(subject).get()) == 1);
  Sure(X509_set_issuer_name(x509, CommonName(issuer).get()) == 1);
  SetPublicKey(x509, key);
  return certificate;
}

// Adds extensions to a certificate that will be signed by `issuer`, possibly itself.
void Extend(X509* certificate, X509* issuer,
            std::initializer_list<std::pair<int, std::string>> extensions) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  for (const auto& [kind, value] : extensions) {
    const ExtensionPtr extension(Sure(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str())));
    Sure(X509_add_ext(certificate, extension.get(), -1) == 1);
  }
}

std::string UriOf(Role role) {
  return absl::StrCat("muster:", NameOf(role));
}

std::uint64_t RandomSerial() {
  std::uint64_t serial = 0;
  Sure(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1);
  return serial >> 1;  // not negative in any encoding
}

// The role that a client's certificate claims.
std::optional<Role> ClaimOf(X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, OpensslFreer<GENERAL_NAMES_free>> names(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (names == nullptr || sk_GENERAL_NAME_num(names.get()) != 1) return std::nullopt;
  const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), 0);
  if (name->type != GEN_URI) return std::nullopt;
  const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
  const absl::string_view text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                               static_cast<std::size_t>(ASN1_STRING_length(uri)));
  for (const Role role : {Role::kAgent, Role::kTool, Role::kMetrics}) {
    if (text == UriOf(role)) return role;
  }
  return std::nullopt;
}

// Ed25519 uses its own digest.
void Sign(X509* certificate, EVP_PKEY* key) {
  Sure(X509_sign(certificate, key, nullptr));
}

}  // namespace

struct Authority::Derived {
  absl::once_flag once;
  // Null once derived.
  std::optional<Token> token;

  KeyPtr key;
  std::string name;

  absl::once_flag certificate_once;
  CertificatePtr own;
  std::string certificate;
};

absl::string_view NameOf(Role role) {
  switch (role) {
    case Role::kDaemon:
      return "daemon";
    case Role::kAgent:
      return "agent";
    case Role::kTool:
      return "tool";
    case Role::kMetrics:
      return "metrics";
  }
  return "";
}

ShownCertificate::ShownCertificate(absl::string_view pem) {
  const BioPtr bio(Sure(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))));
  certificate_.reset(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), &X509_free);
  // Parse errors must not show up in the next call on this thread.
  ERR_clear_error();
  if (certificate_ != nullptr) {
    issuer_ = SoleCommonName(X509_get_issuer_name(certificate_.get()));
  }
}

Identity::~Identity() {
  OPENSSL_cleanse(key.data(), key.size());
}

Authority::Authority(const Token& token) : derived_(std::make_shared<Derived>()) {
  derived_->token = token;
}

const Authority::Derived& Authority::derived() const {
  Derived& all = *derived_;
  absl::call_once(all.once, [&all] {
    all.key = DeriveKey(*all.token);
    all.token.reset();
    all.name = NameFor(all.key.get());
  });
  return all;
}

const Authority::Derived& Authority::certified() const {
  derived();
  Derived& all = *derived_;
  absl::call_once(all.certificate_once, [&all] {
    // RFC 5280, 4.1.2.5: this date means no expiry.
    const absl::Time never =
        absl::FromCivil(absl::CivilSecond(9999, 12, 31, 23, 59, 59), absl::UTCTimeZone());
    all.own = Draft(all.name, all.name, all.key.get(), 1, absl::FromUnixSeconds(0), never);
    Extend(all.own.get(), all.own.get(),
           {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
            {NID_key_usage, "critical,keyCertSign"},
            {NID_subject_key_identifier, "hash"}});
    Sign(all.own.get(), all.key.get());
    all.certificate = PemOf(all.own.get());
  });
  return all;
}

const std::string& Authority::name() const {
  return derived().name;
}

const std::string& Authority::certificate() const {
  return certified().certificate;
}

Identity Authority::Issue(Role role, absl::Time now) const {
  const KeyPtr key(Sure(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")));
  const CertificatePtr leaf =
      Draft(NameOf(role), name(), key.get(), RandomSerial(), now - kClockDifference, now + kLife);
  const bool serves = role == Role::kDaemon;
  Extend(leaf.get(), certified().own.get(),
         {{NID_basic_constraints, "critical,CA:FALSE"},
          {NID_key_usage, "critical,digitalSignature"},
          {NID_ext_key_usage, serves ? "serverAuth" : "clientAuth"},
          {NID_subject_alt_name,
           serves ? absl::StrCat("DNS:", name()) : absl::StrCat("URI:", UriOf(role))},
          {NID_authority_key_identifier, "keyid:always"}});
  Sign(leaf.get(), derived().key.get());
  return {certificate(), PemOf(key.get()), PemOf(leaf.get())};
}

std::optional<Role> Authority::RoleOf(const ShownCertificate& certificate) const {
  X509* const leaf = certificate.certificate_.get();
  const bool ours = leaf != nullptr && certificate.issuer() == name() &&
                    X509_verify(leaf, derived().key.get()) == 1;
  // Verification errors must not show up in the next call on this thread.
  ERR_clear_error();
  return ours ? ClaimOf(leaf) : std::nullopt;
}

}  // namespace muster::rendezvous
