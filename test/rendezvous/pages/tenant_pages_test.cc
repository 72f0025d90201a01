// What a daemon shows of a tenant that is not open, because the daemon has only just started or the
// tenant's journal is damaged.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

#include "rendezvous/identity/keyring.h"
#include "rendezvous/identity/token.h"
#include "rendezvous/server/daemon_pages.h"
#include "test/rendezvous/pages/description.h"
#include "test/rendezvous/support/fake_journal.h"
#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TenantPagesTest : public testing::Test {
 protected:
  using Opened = std::function<void(absl::StatusOr<OpenedJournal>)>;

  void SetUp() override {
    tokens_.Write("alice", alice_.Text() + "\n", 0600);
    tokens_.Write("bob", bob_.Text() + "\n", 0600);
    auto keyring = Keyring::OfDirectory(tokens_.path());
    ASSERT_TRUE(keyring.ok()) << keyring.status();
    server_.Resume([](const absl::Status&) {}, [] {});
    auto pages = DaemonPages::Open(io_, {"127.0.0.1", 0},
                                   Credentials::FromKeyring(*keyring, Role::kTool), server_);
    ASSERT_TRUE(pages.ok()) << pages.status();
    pages_ = *std::move(pages);
  }

  HttpAnswer Ask(const std::string& path, const Token& token) {
    return pages_->AnswerTo({.path = path, .bearer = token.Text()});
  }
  void Answer(const std::string& tenant, absl::StatusOr<OpenedJournal> journal) {
    const auto opened = open_.extract(tenant);
    ASSERT_FALSE(opened.empty()) << tenant << " is not being opened";
    opened.mapped()(std::move(journal));
  }

  test::TempDir tokens_;
  const Token alice_ = Token::Random();
  const Token bob_ = Token::Random();
  boost::asio::io_context io_;
  FakeJournal journal_;
  std::map<std::string, Opened> open_;  // under way
  Server server_{io_, Server::Memory{.journal = &journal_,
                                     .contents = {},
                                     .on_fatal = [](const absl::Status&) {},
                                     .open = [this](const std::string& tenant,
                                                    Opened opened) { open_[tenant] = opened; },
                                     .tenants = {"alice", "bob"}}};
  std::unique_ptr<DaemonPages> pages_;
};

// "Our monitoring believed that all jobs were gone, whenever the daemon changed."
TEST_F(TenantPagesTest, WhoIsNotOpenIsNotSaidToHaveNoJobs) {
  const base::Json api = Description();
  const std::map<std::string, std::string> paths = {
      {"/api/v1/jobs", "/api/v1/jobs"},
      {"/api/v1/jobs/job", "/api/v1/jobs/{run_id}"},
      {"/api/v1/jobs/job/logs", "/api/v1/jobs/{run_id}/logs"},
      {"/api/v1/events", "/api/v1/events"}};
  const auto expect = [&](const std::string& why) {
    for (const auto& [path, described_as] : paths) {
      const HttpAnswer answer = Ask(path, alice_);
      EXPECT_EQ(answer.status, 503) << path;
      EXPECT_THAT(answer.body, HasSubstr(why)) << path;
      EXPECT_EQ(Objection(answer, described_as, api), "");
    }
    const HttpAnswer metrics = Ask("/metrics", alice_);
    EXPECT_EQ(metrics.status, 200);
    EXPECT_THAT(metrics.body, HasSubstr("muster_tenant_open 0\n"));
    EXPECT_THAT(metrics.body, Not(HasSubstr("muster_jobs")));
  };
  expect("the daemon is still opening this tenant's state");
  Answer("bob", OpenedJournal{std::make_unique<FakeJournal>(), {}});
  Answer("alice", absl::DataLossError("it is damaged"));
  expect("the daemon cannot open this tenant's state");
  // That is no concern of anybody else's.
  EXPECT_EQ(Ask("/api/v1/jobs", bob_).body, "[]\n");
  EXPECT_THAT(Ask("/metrics", bob_).body, HasSubstr("muster_tenant_open 1\n"));
  EXPECT_EQ(Ask("/api/v1/jobs/job", bob_).status, 404);
  EXPECT_EQ(pages_->AnswerTo({.path = "/readyz"}).status, 200);
}

}  // namespace
}  // namespace muster::rendezvous
