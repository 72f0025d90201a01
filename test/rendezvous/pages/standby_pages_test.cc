// What a daemon that stands by answers over HTTP, and to whom.
#include "rendezvous/server/daemon_pages.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

#include "rendezvous/identity/token.h"

namespace muster::rendezvous {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// "Prometheus said that the daemon which stands by was down, and of one that could not follow any
// more it said the same."
TEST(StandbyPagesTest, SaysThatItIsWellAndWhetherItFollows) {
  boost::asio::io_context io;
  const Token token = Token::Random();
  bool follows = true;
  const auto pages = StandbyPages::Open(
      io, {"127.0.0.1", 0}, Credentials::FromToken(token, Role::kTool), [&] { return follows; });
  ASSERT_TRUE(pages.ok()) << pages.status();
  const auto ask = [&](const std::string& path, const std::string& bearer = "") {
    return (*pages)->AnswerTo({.path = path, .bearer = bearer});
  };
  EXPECT_EQ(ask("/healthz").status, 200);
  EXPECT_EQ(ask("/readyz").status, 503) << "no node may come here";
  EXPECT_EQ(ask("/").status, 503);
  EXPECT_EQ(ask("/api/v1/jobs", token.Text()).status, 503);
  EXPECT_EQ(ask("/metrics").status, 401);
  const std::string bearer = token.ForMetrics().Text();
  EXPECT_THAT(ask("/metrics", bearer).body, HasSubstr("\nmuster_standby_follows 1\n"));
  follows = false;
  EXPECT_THAT(ask("/metrics", bearer).body, HasSubstr("\nmuster_standby_follows 0\n"));
}

// As of a daemon that leads: a page of another site, whose name means this machine.
TEST(StandbyPagesTest, WithoutATokenWhoAsksForAForeignNameIsToldNothing) {
  boost::asio::io_context io;
  const auto pages =
      StandbyPages::Open(io, {"127.0.0.1", 0}, Credentials::Plaintext(), [] { return true; });
  ASSERT_TRUE(pages.ok()) << pages.status();
  const HttpAnswer answer =
      (*pages)->AnswerTo({.path = "/metrics", .bearer = "", .host = "x.example"});
  EXPECT_EQ(answer.status, 403);
  EXPECT_THAT(answer.body, Not(HasSubstr("muster_standby_follows")));
}

}  // namespace
}  // namespace muster::rendezvous
