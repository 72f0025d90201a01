// Certificates of a site's own authority, which every node of the site has anyway, take the token's
// place.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/site_authority.h"

namespace muster::test {
namespace {

using Words = std::vector<std::string>;

Words Joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

using SiteCertificatesTest = E2eTest;

TEST_F(SiteCertificatesTest, TakeTheTokensPlaceEverywhere) {
  const SiteAuthority site("site");
  const auto files = [&](const std::string& name, const SiteAuthority::Leaf& leaf) {
    return Words{"--tls-ca=" + Write("ca", site.certificate()),
                 "--tls-cert=" + Write(name + ".crt", leaf.certificate),
                 "--tls-key=" + Write(name + ".key", leaf.key, 0600)};
  };
  Command daemon(Joined({DaemonPath(), "--listen=127.0.0.1:0", "--ready-fd=1"},
                        files("daemon", site.Issue("IP:127.0.0.1"))));
  ASSERT_TRUE(daemon.WaitForOut("\n")) << daemon.err();
  const Words endpoint = {"--rdzv-endpoint=127.0.0.1:" + Lines(daemon.out())[0]};
  const auto join = [&](const Words& more) {
    return StartAgent(Joined(Joined(endpoint, {"--rdzv-id=job"}), more),
                      MusterPath() + " kv set key value && " + MusterPath() + " kv get key");
  };

  const Words node = files("node", site.Issue("DNS:node"));
  Command agent = join(node);
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  EXPECT_TRUE(Contains(agent.out(), "value"));
  EXPECT_EQ(Command(Joined(Joined({MusterPath(), "status"}, endpoint), node)).Wait(), 0);

  Command with_token = join({});
  EXPECT_EQ(with_token.Wait(), 3);
  EXPECT_TRUE(Contains(with_token.err(), "it was started with another token than the one here"));
  Command half = join({node[0], node[1]});
  EXPECT_EQ(half.Wait(), 2);
  EXPECT_TRUE(Contains(half.err(), "certificates of a site's own take three files"));
  files("node", site.Issue("DNS:node", absl::Now() - absl::Hours(2), absl::Now() - absl::Hours(1)));
  Command expired = join(node);
  EXPECT_EQ(expired.Wait(), 2);
  EXPECT_EQ(Lines(expired.err()).size(), 1U) << expired.err();
  EXPECT_TRUE(Contains(expired.err(), "node.crt: it has expired, on "));
}

}  // namespace
}  // namespace muster::test
