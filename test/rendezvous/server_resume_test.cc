// How a daemon resumes many tenants from what it remembers: each on its own, and each as soon as it
// can be served.
#include "rendezvous/server/server.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include "absl/strings/str_cat.h"
#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/identity/token.h"
#include "test/rendezvous/support/fake_journal.h"
#include "test/rendezvous/support/join_request.h"
#include "test/rendezvous/support/recording_listener.h"
#include "test/support/run_until.h"
#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;
using test::RunUntil;

class ServerResumeTest : public testing::Test {
 protected:
  static std::string SessionOf(const std::string& tenant) { return "session-of-" + tenant; }

  // A job of one node, which has five seconds to come back.
  JournalContents Remembered(const std::string& tenant) {
    boost::asio::io_context io;
    FakeJournal journal;
    DaemonLoop daemon_loop(io, nullptr, {.durable = true});
    daemon_loop.UseJournal(journal, [](const absl::Status&) {});
    JoinRequest request = RequestFor(1, 1);
    request.session = SessionOf(tenant);
    daemon_loop.Hear(daemon_loop.Attach([](const Directive&) {}), request);
    io.poll();
    JournalContents contents;
    contents.jobs.emplace_back("job", journal.batches.at(0).jobs.at(0).record.value());
    return contents;
  }

  static std::vector<std::string> Tenants(int count) {
    std::vector<std::string> tenants;
    for (int i = 0; i < count; ++i) tenants.push_back(absl::StrCat("t", i));
    return tenants;
  }

  // A daemon that takes over, over an etcd that answers when the test says so.
  void TakeOver(std::vector<std::string> tenants) {
    server_.emplace(io_, Server::Memory{.journal = &journal_,
                                        .contents = Remembered(""),
                                        .on_fatal = [](const absl::Status&) {},
                                        .open = [this](const std::string& tenant,
                                                       Opened opened) { open_[tenant] = opened; },
                                        .tenants = std::move(tenants),
                                        .leads = [] { return true; }});
    server_->Resume([this](const absl::Status& status) { resumed_ = status.ok(); },
                    [this] { all_resumed_ = true; });
    ASSERT_TRUE(RunUntil(io_, [this] { return resumed_; }));
  }
  void Listen(const Credentials& credentials = Credentials::Plaintext()) {
    ASSERT_TRUE(server_->Listen({"127.0.0.1", 0}, credentials).ok());
  }
  // The guard of the tenant's agent says that it is dead, and has been heard.
  void TellOfDeath(const std::string& tenant) {
    tcp::socket guard(io_);
    guard.connect({boost::asio::ip::address_v4::loopback(), server_->port()});
    boost::asio::write(guard, boost::asio::buffer("DEAD " + SessionOf(tenant) + "\n"));
    bool heard = false;
    char none = 0;
    guard.async_read_some(boost::asio::buffer(&none, 1),
                          [&](const boost::system::error_code&, std::size_t) { heard = true; });
    ASSERT_TRUE(RunUntil(io_, [&] { return heard; }));
  }

  void Answer(const std::string& tenant, absl::StatusOr<OpenedJournal> journal) {
    const auto opened = open_.extract(tenant);
    ASSERT_FALSE(opened.empty()) << tenant << " is not being opened";
    opened.mapped()(std::move(journal));
  }
  void Answer(const std::string& tenant) {
    Answer(tenant, OpenedJournal{std::make_unique<FakeJournal>(), Remembered(tenant)});
  }
  bool Serves(const std::string& tenant) { return server_->FindLoop(tenant) != nullptr; }

  using Opened = std::function<void(absl::StatusOr<OpenedJournal>)>;
  boost::asio::io_context io_;
  FakeJournal journal_;
  std::map<std::string, Opened> open_;  // under way
  bool resumed_ = false;
  bool all_resumed_ = false;
  std::optional<Server> server_;
};

// "With 24 tenants and an etcd 0.3 s away the next daemon served after eleven seconds, and by then
// agents had killed their workers."
TEST_F(ServerResumeTest, NobodyWaitsForOtherTenants) {
  TakeOver(Tenants(24));
  EXPECT_EQ(open_.size(), 24u) << "they are opened beside one another";
  Listen();
  Answer("t7");
  ASSERT_TRUE(RunUntil(io_, [this] { return Serves("t7"); }));
  EXPECT_EQ(server_->FindLoop("t7")->agent_count(), 1);
  EXPECT_FALSE(Serves("t8"));
  EXPECT_FALSE(all_resumed_);
  for (const std::string& tenant : Tenants(24)) {
    if (tenant != "t7") Answer(tenant);
  }
  ASSERT_TRUE(RunUntil(io_, [this] { return all_resumed_; }));
  EXPECT_EQ(server_->agent_count(), 25);
}

TEST_F(ServerResumeTest, HundredsOfTenantsAreOpenedByTheDozen) {
  TakeOver(Tenants(100));
  std::size_t most = 0;
  while (!all_resumed_) {
    most = std::max(most, open_.size());
    ASSERT_FALSE(open_.empty());
    const std::string next = open_.begin()->first;
    Answer(next);
    ASSERT_TRUE(RunUntil(io_, [&] { return Serves(next); }));
  }
  EXPECT_EQ(most, 32u);
  EXPECT_EQ(server_->agent_count(), 101);
}

TEST_F(ServerResumeTest, OneThatCannotBeOpenedIsLeftOut) {
  TakeOver(Tenants(2));
  Answer("t0", absl::DataLossError("it is damaged"));
  EXPECT_FALSE(all_resumed_);
  Answer("t1");
  ASSERT_TRUE(RunUntil(io_, [this] { return all_resumed_; }));
  EXPECT_TRUE(Serves("t1"));
  EXPECT_FALSE(Serves("t0"));
}

// "The daemon took half a minute to begin, and then gave up nodes that were well."
TEST_F(ServerResumeTest, NobodyIsGivenUpBeforeHeCanComeBack) {
  TakeOver({"early", "late"});
  Answer("early");
  ASSERT_TRUE(RunUntil(io_, [this] { return Serves("early"); }));
  // Until there is nothing left that the loop waits for, no deadline either.
  io_.restart();
  io_.run();
  EXPECT_EQ(server_->daemon_loop().agent_count(), 1);
  EXPECT_EQ(server_->FindLoop("early")->agent_count(), 1);
  Listen();
  Answer("late");
  ASSERT_TRUE(RunUntil(io_, [this] { return all_resumed_; }));
  EXPECT_EQ(server_->agent_count(), 3);
  // Who does not come is given up then, as before.
  EXPECT_TRUE(RunUntil(io_, [this] { return server_->agent_count() == 0; }));
}

// A guard says only once that its agent is dead; else the others would wait for the lease's end.
TEST_F(ServerResumeTest, AgentThatIsDeadBeforeItsTenantIsThereIsNotWaitedFor) {
  TakeOver({"t0", "t1"});
  Listen();
  TellOfDeath("t0");
  Answer("t0");
  Answer("t1");
  ASSERT_TRUE(RunUntil(io_, [this] { return all_resumed_; }));
  EXPECT_EQ(server_->FindLoop("t0")->agent_count(), 0);
  EXPECT_EQ(server_->FindLoop("t1")->agent_count(), 1);
}

// The same where what is remembered of the tenant can be opened only at the second try.
TEST_F(ServerResumeTest, AgentThatIsDeadBeforeItsTenantIsOpenedAgainIsNotWaitedFor) {
  const test::TempDir dir;
  const Token token = Token::Random();
  ASSERT_TRUE(WriteTokenFile(dir.Path("tokens/t0"), token).ok());
  const auto keyring = Keyring::OfDirectory(dir.Path("tokens"));
  ASSERT_TRUE(keyring.ok()) << keyring.status();
  TakeOver({"t0", "t1"});
  Listen(Credentials::FromKeyring(*keyring, Role::kDaemon));
  Answer("t0", absl::UnavailableError("the disk is being mended"));
  Answer("t1");
  ASSERT_TRUE(RunUntil(io_, [this] { return all_resumed_; }));
  TellOfDeath("t0");
  // An agent of the tenant asks again, until that leads to another try.
  RecordingListener heard;
  const auto client = MakeGrpcClient(io_,
                                     {.endpoint = {"127.0.0.1", server_->port()},
                                      .credentials = Credentials::FromToken(token, Role::kAgent)},
                                     heard);
  client->Join(RequestFor(1, 1));
  ASSERT_TRUE(RunUntil(io_, [this] { return open_.contains("t0"); }));
  Answer("t0");
  ASSERT_TRUE(RunUntil(io_, [this] { return Serves("t0"); }));
  EXPECT_EQ(server_->FindLoop("t0")->agent_count(), 0);
}

}  // namespace
}  // namespace muster::rendezvous
