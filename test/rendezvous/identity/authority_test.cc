#include "rendezvous/identity/authority.h"

#include <memory>
#include <string>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <gtest/gtest.h>

#include "absl/time/clock.h"

namespace muster::rendezvous {
namespace {

using X509Ptr = std::unique_ptr<X509, decltype(&X509_free)>;

Token TokenOf(char digit) {
  return *Token::Parse(std::string(64, digit));
}

X509Ptr Read(const std::string& pem) {
  BIO* const bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509Ptr certificate(PEM_read_bio_X509(bio, nullptr, nullptr, nullptr), X509_free);
  BIO_free(bio);
  return certificate;
}

// OpenSSL's verdict about the identity at that time, shown for `purpose` to a peer that trusts only
// `root`: "ok" or why not.
std::string Verify(const Identity& identity, const std::string& root, absl::Time when,
                   int purpose) {
  X509_STORE* const store = X509_STORE_new();
  X509_STORE_add_cert(store, Read(root).get());
  X509_STORE_CTX* const context = X509_STORE_CTX_new();
  const X509Ptr leaf = Read(identity.certificate);
  X509_STORE_CTX_init(context, store, leaf.get(), nullptr);
  X509_STORE_CTX_set_purpose(context, purpose);
  X509_STORE_CTX_set_flags(context, X509_V_FLAG_X509_STRICT);
  X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(context), absl::ToTimeT(when));
  X509_verify_cert(context);
  const std::string answer = X509_verify_cert_error_string(X509_STORE_CTX_get_error(context));
  X509_STORE_CTX_free(context);
  X509_STORE_free(store);
  return answer;
}

TEST(AuthorityTest, FollowsFromTheTokenAlone) {
  const Authority one(TokenOf('a')), same(TokenOf('a')), other(TokenOf('b'));
  EXPECT_EQ(one.name(), same.name());
  EXPECT_EQ(one.certificate(), same.certificate());
  EXPECT_NE(one.name(), other.name());
  EXPECT_NE(one.certificate(), other.certificate());
}

// Computed by other means: `openssl kdf -keylen 32 -kdfopt digest:SHA256 -kdfopt hexkey:0001...1f
// -kdfopt info:"muster authority v1" HKDF` gives the private key, `openssl pkey` its public one,
// and sha256sum the name. What a release derives must be what the next one derives.
TEST(AuthorityTest, DerivesWhatOpensslsCommandsDerive) {
  const auto token =
      Token::Parse("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
  EXPECT_EQ(Authority(*token).name(), "muster-42896d8f4cb7bb96");
}

TEST(AuthorityTest, IssuesWhatHoldersOfTheTokenAccept) {
  const absl::Time now = absl::Now();
  const Authority here(TokenOf('a')), there(TokenOf('a'));
  EXPECT_EQ(
      Verify(here.Issue(Role::kDaemon, now), there.certificate(), now, X509_PURPOSE_SSL_SERVER),
      "ok");
  EXPECT_EQ(
      Verify(here.Issue(Role::kAgent, now), there.certificate(), now, X509_PURPOSE_SSL_CLIENT),
      "ok");
}

TEST(AuthorityTest, AnothersIsNotAccepted) {
  const absl::Time now = absl::Now();
  EXPECT_EQ(Verify(Authority(TokenOf('b')).Issue(Role::kAgent, now),
                   Authority(TokenOf('a')).certificate(), now, X509_PURPOSE_SSL_CLIENT),
            "unable to get local issuer certificate");
}

TEST(AuthorityTest, WhatIsIssuedIsGoodForTwelveHoursEachWay) {
  const absl::Time now = absl::Now();
  const Authority authority(TokenOf('a'));
  const Identity identity = authority.Issue(Role::kAgent, now);
  const auto at = [&](absl::Duration later) {
    return Verify(identity, authority.certificate(), now + later, X509_PURPOSE_SSL_CLIENT);
  };
  EXPECT_EQ(at(absl::Hours(11)), "ok");
  EXPECT_EQ(at(-absl::Hours(11)), "ok");
  EXPECT_EQ(at(absl::Hours(13)), "certificate has expired");
  EXPECT_EQ(at(-absl::Hours(13)), "certificate is not yet valid");
}

TEST(AuthorityTest, AClientCannotPassForADaemonNorIssueAnything) {
  const absl::Time now = absl::Now();
  const Authority authority(TokenOf('a'));
  const Identity agent = authority.Issue(Role::kAgent, now);
  EXPECT_EQ(Verify(agent, authority.certificate(), now, X509_PURPOSE_SSL_SERVER),
            "unsuitable certificate purpose");
  EXPECT_EQ(Verify(authority.Issue(Role::kDaemon, now), authority.certificate(), now,
                   X509_PURPOSE_SSL_CLIENT),
            "unsuitable certificate purpose");
  EXPECT_EQ(X509_check_ca(Read(agent.certificate).get()), 0);
}

TEST(AuthorityTest, ACertificateSaysWhatItsHolderIs) {
  const absl::Time now = absl::Now();
  const Authority authority(TokenOf('a'));
  EXPECT_EQ(X509_check_host(Read(authority.Issue(Role::kDaemon, now).certificate).get(),
                            authority.name().c_str(), 0, 0, nullptr),
            1);
  EXPECT_EQ(X509_check_host(Read(authority.Issue(Role::kTool, now).certificate).get(),
                            authority.name().c_str(), 0, 0, nullptr),
            0);
}

// As made by X509_set_pubkey, which nodes of an older Muster use.
TEST(AuthorityTest, ItsCertificateIsWhatOpensslsOwnFunctionsMake) {
  const auto token =
      Token::Parse("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
  EXPECT_EQ(Authority(*token).certificate(), R"(-----BEGIN CERTIFICATE-----
MIIBOTCB7KADAgECAgEBMAUGAytlcDAiMSAwHgYDVQQDDBdtdXN0ZXItNDI4OTZk
OGY0Y2I3YmI5NjAgFw03MDAxMDEwMDAwMDBaGA85OTk5MTIzMTIzNTk1OVowIjEg
MB4GA1UEAwwXbXVzdGVyLTQyODk2ZDhmNGNiN2JiOTYwKjAFBgMrZXADIQBHwYYi
MYJQ0Xmsbwqw2X182SR3xACreK9Hw48xjaQKEaNFMEMwEgYDVR0TAQH/BAgwBgEB
/wIBADAOBgNVHQ8BAf8EBAMCAgQwHQYDVR0OBBYEFP0esgKLW5oJJZQC0yhV3U//
tSVpMAUGAytlcANBAJ1T695mVGRJbcCRmYyRglnPX339MChYAWq/g2Rs6R8eN9g1
OieN80xitzp9+IkV7GFYTtfwDW+33mSRiebhQgo=
-----END CERTIFICATE-----
)");
}

TEST(AuthorityTest, KeysAreWrittenAsOpensslsOwnFunctionsWriteThem) {
  const Identity identity = Authority(TokenOf('a')).Issue(Role::kAgent, absl::Now());
  BIO* const in = BIO_new_mem_buf(identity.key.data(), static_cast<int>(identity.key.size()));
  EVP_PKEY* const key = PEM_read_bio_PrivateKey(in, nullptr, nullptr, nullptr);
  ASSERT_NE(key, nullptr);
  BIO* const out = BIO_new(BIO_s_mem());
  EXPECT_EQ(PEM_write_bio_PKCS8PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr), 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(out, &data);
  EXPECT_EQ(identity.key, std::string(data, static_cast<std::size_t>(size)));
  // The key matches the certificate.
  EXPECT_EQ(X509_check_private_key(Read(identity.certificate).get(), key), 1);
  BIO_free(out);
  EVP_PKEY_free(key);
  BIO_free(in);
}

TEST(AuthorityTest, EachKeyIsANewOne) {
  const Authority authority(TokenOf('a'));
  EXPECT_NE(authority.Issue(Role::kAgent, absl::Now()).key,
            authority.Issue(Role::kAgent, absl::Now()).key);
}

}  // namespace
}  // namespace muster::rendezvous
