#include "rendezvous/identity/site_certificates.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/site_authority.h"
#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

using test::SiteAuthority;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SiteCertificatesTest : public testing::Test {
 protected:
  SiteCertificatesTest() { WriteAll(site_.Issue("IP:127.0.0.1")); }

  std::string Path(const std::string& name) const { return dir_.Path(name); }
  void Write(const std::string& name, const std::string& text) {
    // Like programs that renew certificates: another file of the same name.
    std::ofstream(Path(name + ".new")) << text;
    chmod(Path(name + ".new").c_str(), 0600);
    std::filesystem::rename(Path(name + ".new"), Path(name));
  }
  void WriteAll(const SiteAuthority::Leaf& leaf) {
    Write("ca", site_.certificate());
    Write("cert", leaf.certificate);
    Write("key", leaf.key);
  }
  CertificateFiles Files() const { return {Path("ca"), Path("cert"), Path("key")}; }
  std::string Problem() const {
    return std::string(SiteCertificates::Load(Files()).status().message());
  }

  const test::TempDir dir_;
  const SiteAuthority site_{"site"};
  std::vector<std::string> troubles_;
};

TEST_F(SiteCertificatesTest, AreReadAgainWhenTheFilesHaveChanged) {
  const auto site = SiteCertificates::Load(
      Files(), [this](const std::string& sentence) { troubles_.push_back(sentence); });
  ASSERT_TRUE(site.ok()) << site.status();
  const auto before = site->Now();
  EXPECT_EQ(site->Now(), before);
  EXPECT_EQ(before->roots, site_.certificate());
  const auto next = site_.Issue("IP:127.0.0.2");
  // One file after the other: in between, the key does not match the certificate.
  Write("cert", next.certificate);
  EXPECT_EQ(site->Now(), before);
  EXPECT_EQ(site->Now(), before);
  EXPECT_THAT(troubles_, ElementsAre("read TLS key " + Path("key") +
                                     ": it is not the key of the certificate in " + Path("cert")));
  Write("key", next.key);
  EXPECT_EQ(site->Now()->certificate, next.certificate);
  EXPECT_EQ(site->Now()->key, next.key);
  EXPECT_EQ(troubles_.size(), 1u);
}

TEST_F(SiteCertificatesTest, AChainLeadsToTheAuthority) {
  Write("cert", site_.Issue("DNS:a").certificate + site_.certificate());
  EXPECT_THAT(Problem(), HasSubstr("it is not the key of the certificate"));
  const auto leaf = site_.Issue("DNS:a");
  Write("cert", leaf.certificate + site_.certificate());
  Write("key", leaf.key);
  EXPECT_EQ(Problem(), "");
}

TEST_F(SiteCertificatesTest, EachMistakeIsOneSentenceThatNamesTheFile) {
  const absl::Time day = absl::FromUnixSeconds(1'700'000'000);
  WriteAll(site_.Issue("DNS:a", day, day + absl::Hours(1)));
  EXPECT_EQ(Problem(),
            "read TLS certificate " + Path("cert") + ": it has expired, on 2023-11-14 23:13 UTC");
  const absl::Time far = absl::FromUnixSeconds(4'000'000'000);
  WriteAll(site_.Issue("DNS:a", far, far + absl::Hours(1)));
  EXPECT_THAT(Problem(), HasSubstr("it is not valid before 2096-10-02 07:06 UTC"));
  const SiteAuthority other("other");
  WriteAll(other.Issue("DNS:a"));
  EXPECT_THAT(Problem(), HasSubstr("no authority in " + Path("ca") + " has issued it ("));
  WriteAll(site_.Issue("DNS:a"));
  chmod(Path("key").c_str(), 0644);
  EXPECT_THAT(Problem(), HasSubstr("read TLS key " + Path("key") + ": other users can read"));
  Write("key", "no key");
  EXPECT_THAT(Problem(), HasSubstr("it holds no unencrypted PEM private key"));
  Write("cert", "no certificate");
  EXPECT_THAT(Problem(), HasSubstr("it holds no PEM certificate"));
  Write("ca", "");
  EXPECT_THAT(Problem(),
              HasSubstr("read TLS authority " + Path("ca") + ": it holds no PEM certificate"));
  std::filesystem::remove(Path("ca"));
  EXPECT_THAT(Problem(), HasSubstr("No such file or directory"));
  ASSERT_EQ(mkfifo(Path("ca").c_str(), 0600), 0);
  EXPECT_THAT(Problem(), HasSubstr("it is not a regular file"));
}

// The daemon started with such certificates, and nodes were told that they had expired, or "Socket
// closed".
TEST_F(SiteCertificatesTest, WhatTheOtherEndWouldRefuseIsRefusedWhenItIsRead) {
  const auto fresh = [] { return EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"); };
  const auto problem = [&](EVP_PKEY* key, const SiteAuthority::Extensions& extensions,
                           CertificateUse use) {
    WriteAll(site_.Issue(key, "DNS:a", extensions));
    return std::string(SiteCertificates::Load(Files(), {}, use).status().message());
  };
  const SiteAuthority::Extensions client = {{NID_ext_key_usage, "clientAuth"}},
                                  server = {{NID_ext_key_usage, "serverAuth"}},
                                  both = {{NID_ext_key_usage, "serverAuth,clientAuth"}},
                                  no_signature = {{NID_key_usage, "critical,keyCertSign"}},
                                  exchange = {{NID_key_usage, "keyEncipherment,keyAgreement"}};
  using enum CertificateUse;
  for (const CertificateUse use : {kServer, kClient}) {
    EXPECT_EQ(problem(fresh(), {}, use), "");
    EXPECT_EQ(problem(fresh(), both, use), "");
    EXPECT_THAT(problem(fresh(), no_signature, use), HasSubstr("digitalSignature"));
    EXPECT_THAT(problem(fresh(), exchange, use), HasSubstr("digitalSignature"));
    const std::size_t bits = 1024;
    EXPECT_THAT(problem(EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", bits), {}, use),
                HasSubstr("it has a key of 1024 bits, which is too weak for TLS; have one issued"));
  }
  EXPECT_EQ(problem(fresh(), server, kServer), "");
  EXPECT_EQ(problem(fresh(), client, kClient), "");
  EXPECT_EQ(problem(fresh(), client, kServer),
            "read TLS certificate " + Path("cert") +
                ": it is not a server certificate: its key usage must include digitalSignature "
                "and its extended key usage serverAuth, if present; have a matching one issued");
  EXPECT_THAT(problem(fresh(), server, kClient), HasSubstr("it is not a client certificate"));
}

// An agent is a client, and may become the host of the rendezvous.
TEST_F(SiteCertificatesTest, OneThatIsShownForAnotherUseAsWellIsLookedAtForBothFromThenOn) {
  const auto issue = [&](const char* usage) {
    return site_.Issue(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), "DNS:a",
                       {{NID_ext_key_usage, usage}});
  };
  WriteAll(issue("clientAuth"));
  const auto one = SiteCertificates::Load(Files());
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_THAT(std::string(one->UseFor(CertificateUse::kServer).message()),
              HasSubstr("it is not a server certificate"));
  WriteAll(issue("clientAuth,serverAuth"));
  const auto before = one->Now();
  EXPECT_TRUE(one->UseFor(CertificateUse::kServer).ok());
  WriteAll(issue("clientAuth"));
  EXPECT_EQ(one->Now(), before);
}

// OpenSSL would ask for a password on the terminal of the user who starts a daemon; in a systemd
// unit there is none.
TEST_F(SiteCertificatesTest, AKeyWithAPasswordIsRefused) {
  Write("key",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
        "MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAg5oP3dQ3y0CgICCAAw\n"
        "-----END ENCRYPTED PRIVATE KEY-----\n");
  EXPECT_THAT(Problem(), HasSubstr("it holds no unencrypted PEM private key"));
}

TEST_F(SiteCertificatesTest, OneThatExpiresWhileTheProcessRunsIsTold) {
  WriteAll(site_.Issue("DNS:a", absl::Now() - absl::Hours(1), absl::Now() + absl::Seconds(2)));
  const auto site = SiteCertificates::Load(
      Files(), [this](const std::string& sentence) { troubles_.push_back(sentence); });
  ASSERT_TRUE(site.ok()) << site.status();
  EXPECT_THAT(troubles_, IsEmpty());
  while (troubles_.empty()) site->Now();
  EXPECT_THAT(troubles_, ElementsAre(HasSubstr("it has expired, on")));
}

}  // namespace
}  // namespace muster::rendezvous
