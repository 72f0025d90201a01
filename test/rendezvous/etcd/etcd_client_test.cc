// Calls to a real etcd, and to one that is slow.
#include "rendezvous/etcd/etcd_client.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "absl/strings/str_cat.h"
#include "etcd/etcdserver/etcdserverpb/rpc.grpc.pb.h"
#include "test/support/command.h"
#include "test/support/run_until.h"
#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;
using test::Command;

class EtcdClientTest : public testing::Test {
 protected:
  void SetUp() override {
    for (tcp::acceptor* const port : {&clients_, &peers_}) {
      port->open(tcp::v4());
      port->set_option(tcp::acceptor::reuse_address(true));
      port->bind({boost::asio::ip::address_v4::loopback(), 0});
    }
    const std::string peers = absl::StrCat("http://", At(peers_));
    const std::string clients = absl::StrCat("http://", At(clients_));
    etcd_ = std::make_unique<Command>(std::vector<std::string>{
        "/usr/bin/etcd", "--data-dir=" + dir_.path() + "/etcd", "--listen-client-urls=" + clients,
        "--advertise-client-urls=" + clients, "--listen-peer-urls=" + peers,
        "--initial-advertise-peer-urls=" + peers, "--initial-cluster=default=" + peers});
    ASSERT_TRUE(etcd_->WaitForErr("ready to serve client requests")) << etcd_->err();
  }

  static std::string At(const tcp::acceptor& port) {
    return absl::StrCat("127.0.0.1:", port.local_endpoint().port());
  }

  void Ctl(const std::vector<std::string>& words) const {
    std::vector<std::string> argv = {"/usr/bin/env", "ETCDCTL_API=3", "etcdctl",
                                     "--endpoints=" + At(clients_)};
    argv.insert(argv.end(), words.begin(), words.end());
    Command etcdctl(argv);
    ASSERT_EQ(etcdctl.Wait(), 0) << etcdctl.err();
  }

  // Etcd has users from now on, and "muster" may do what it likes under /m/.
  std::unique_ptr<etcd::Etcd> ConnectAsUser() {
    Ctl({"user", "add", "root:pw"});
    Ctl({"user", "add", "muster:pw"});
    Ctl({"role", "add", "muster"});
    Ctl({"role", "grant-permission", "muster", "--prefix=true", "readwrite", "/m/"});
    Ctl({"user", "grant-role", "muster", "muster"});
    Ctl({"user", "grant-role", "root", "root"});
    Ctl({"auth", "enable"});
    return etcd::ConnectToEtcd(io_, {.members = {At(clients_)}, .user = "muster", .password = "pw"},
                               {});
  }
  // Its tokens count no longer, as when they have run out.
  void EndTokens() const {
    Ctl({"--user=root:pw", "user", "delete", "muster"});
    Ctl({"--user=root:pw", "user", "add", "muster:pw"});
    Ctl({"--user=root:pw", "user", "grant-role", "muster", "muster"});
  }

  absl::Status Put(etcd::Etcd& client) {
    std::optional<absl::Status> status;
    client.Attempt(
        {.then = {etcd::Put{"/m/key", "x"}}},
        [&](const absl::StatusOr<etcd::Outcome>& outcome) { status = outcome.status(); });
    EXPECT_TRUE(test::RunUntil(io_, [&] { return status.has_value(); }));
    return status.value_or(absl::UnknownError("no answer"));
  }

  test::TempDir dir_;
  boost::asio::io_context io_;
  tcp::acceptor clients_{io_};
  tcp::acceptor peers_{io_};
  std::unique_ptr<Command> etcd_;
};

// "Where etcd has users, a take-over took 200 ms longer when nothing had been asked for minutes."
TEST_F(EtcdClientTest, TokenThatIsRefusedIsReplacedWithinTheAttempt) {
  const auto client = ConnectAsUser();
  EXPECT_TRUE(Put(*client).ok());
  EndTokens();
  const absl::Status status = Put(*client);
  EXPECT_TRUE(status.ok()) << status;
  // One that is refused whatever the token is.
  Ctl({"--user=root:pw", "user", "revoke-role", "muster", "muster"});
  EXPECT_TRUE(absl::IsPermissionDenied(Put(*client)));
}

// "Where etcd has users, a daemon that stood by looked for the leader's end in vain, over and
// over."
TEST_F(EtcdClientTest, DeletionIsAwaitedWithAnotherTokenWhenOneWasRefused) {
  const auto client = ConnectAsUser();
  ASSERT_TRUE(Put(*client).ok());
  EndTokens();
  std::optional<absl::Status> refused;
  client->AwaitDeletion("/m/key", 1, [&](const absl::Status& status) { refused = status; });
  ASSERT_TRUE(test::RunUntil(io_, [&] { return refused.has_value(); }));
  EXPECT_TRUE(absl::IsUnavailable(*refused)) << *refused;
  std::optional<absl::Status> ended;
  client->AwaitDeletion("/m/key", 1, [&](const absl::Status& status) { ended = status; });
  // Whichever comes first, etcd tells what has been deleted since.
  Ctl({"--user=root:pw", "del", "/m/key"});
  ASSERT_TRUE(test::RunUntil(io_, [&] { return ended.has_value(); }));
  EXPECT_TRUE(ended->ok()) << *ended;
}

// Takes its time for every transaction.
class SlowEtcd final : public etcdserverpb::KV::Service {
 public:
  explicit SlowEtcd(std::chrono::milliseconds takes) : takes_(takes) {}
  grpc::Status Txn(grpc::ServerContext*, const etcdserverpb::TxnRequest*,
                   etcdserverpb::TxnResponse* answer) override {
    std::this_thread::sleep_for(takes_);
    answer->set_succeeded(true);
    return grpc::Status::OK;
  }

 private:
  const std::chrono::milliseconds takes_;
};

class SlowEtcdTest : public testing::Test {
 protected:
  static constexpr std::chrono::milliseconds kPatience{100};

  void Start(std::chrono::milliseconds takes) {
    slow_ = std::make_unique<SlowEtcd>(takes);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(slow_.get());
    server_ = builder.BuildAndStart();
  }
  std::string At() const { return absl::StrCat("127.0.0.1:", port_); }

  std::unique_ptr<etcd::Etcd> Connect(std::vector<std::string> members) {
    return etcd::ConnectToEtcd(io_, {.members = std::move(members), .patience = kPatience},
                               [this](const std::string& why) { troubles_.push_back(why); });
  }
  // So many transactions beside one another are all answered.
  void Transact(etcd::Etcd& client, int count) {
    int answered = 0;
    for (int i = 0; i < count; ++i) {
      client.Transact({.then = {etcd::Get{"/m/key"}}},
                      [&](const absl::StatusOr<etcd::Outcome>& outcome) {
                        EXPECT_TRUE(outcome.ok()) << outcome.status();
                        ++answered;
                      });
    }
    EXPECT_TRUE(test::RunUntil(io_, [&] { return answered == count; }));
  }

  boost::asio::io_context io_;
  int port_ = 0;
  std::vector<std::string> troubles_;
  std::unique_ptr<SlowEtcd> slow_;
  std::unique_ptr<grpc::Server> server_;
};

// "With a million and a half keys in etcd no daemon could read them any more: each page was asked
// for again before it had come."
TEST_F(SlowEtcdTest, EtcdThatTakesLongerThanUsualIsHeardInTheEnd) {
  Start(3 * kPatience);
  Transact(*Connect({At()}), 1);
}

TEST_F(SlowEtcdTest, WhoReadsIsToldWhenNoMemberAnswersInTime) {
  Start(3 * kPatience);
  const auto client = Connect({At()});
  const auto read = [&](int times) {
    std::optional<absl::Status> status;
    client->Read({.then = {etcd::Get{"/m/key"}}}, times,
                 [&](const absl::StatusOr<etcd::Outcome>& o) { status = o.status(); });
    EXPECT_TRUE(test::RunUntil(io_, [&] { return status.has_value(); }));
    return status.value_or(absl::UnknownError("no answer"));
  };
  const absl::Status late = read(1);
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  const absl::Status in_time = read(etcd::Etcd::kMostTimes);
  EXPECT_TRUE(in_time.ok()) << in_time;
}

// "no member of etcd answers" was in the log of each take-over with many tenants, and one machine
// was down.
TEST_F(SlowEtcdTest, OneMemberThatIsAwayIsNotTakenForAll) {
  Start(std::chrono::milliseconds(0));
  tcp::acceptor nobody(io_);
  nobody.open(tcp::v4());
  nobody.bind({boost::asio::ip::address_v4::loopback(), 0});
  const std::string away = absl::StrCat("127.0.0.1:", nobody.local_endpoint().port());
  Transact(*Connect({away, At()}), 8);
  EXPECT_TRUE(troubles_.empty()) << troubles_.front();
}

}  // namespace
}  // namespace muster::rendezvous
