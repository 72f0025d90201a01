// The reply to each request of c10d's TCPStore protocol, byte for byte, without sockets.
#include "rendezvous/fronts/tcpstore_service.h"

#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "test/rendezvous/fronts/tcpstore_bytes.h"

namespace muster::rendezvous {
namespace {

constexpr std::size_t kOutputLimit = 1000;

class TcpStoreServiceTest : public ::testing::Test {
 protected:
  // A connection of 2.2 or later; of an older version if it begins with nothing.
  class Client final : public TcpStoreClient {
   public:
    explicit Client(TcpStoreServiceTest& test, std::string_view begin = Hello())
        : test_(test), decoder_(test.decode_limits_, test.hint_) {
      EXPECT_EQ(Ask(begin), "");
    }
    ~Client() override { Leave(); }

    void Leave() { test_.service_.Disconnect(*this); }
    void OnPushed() override { ++pushes; }

    // Sends requests and returns what has been sent to this client until then.
    std::string Ask(std::string_view bytes) {
      for (;;) {
        TcpStoreRequest request;
        const auto result = decoder_.Next(bytes, request);
        if (result == TcpStoreDecoder::Result::kNeedsGrace) {
          decoder_.EndGrace();
          continue;
        }
        if (result == TcpStoreDecoder::Result::kNeedsMore) return Received();
        EXPECT_EQ(result, TcpStoreDecoder::Result::kRequest) << decoder_.error();
        if (result != TcpStoreDecoder::Result::kRequest) return "broken";
        if (absl::Status status = test_.service_.Apply(*this, request); !status.ok()) {
          return absl::StrCat("closed: ", status.message());
        }
        if (has_begun()) return Received();
      }
    }

    std::string Received() { return std::exchange(output, {}); }

    int pushes = 0;

   private:
    TcpStoreServiceTest& test_;
    TcpStoreDecoder decoder_;
  };

  static std::string Set(std::string_view key, std::string_view value) {
    return Op(opcode::kSet) + String(key) + String(value);
  }
  static std::string Get(std::string_view key) { return Op(opcode::kGet) + String(key); }
  static std::string Add(std::string_view key, std::int64_t delta) {
    return Op(opcode::kAdd) + String(key) + Number(delta);
  }
  static std::string Wait(const std::vector<std::string>& keys) {
    return Op(opcode::kWait) + Strings(keys);
  }
  static std::string Check(const std::vector<std::string>& keys) {
    return Op(opcode::kCheck) + Strings(keys);
  }
  static std::string Barrier(std::string_view key, std::int64_t size) {
    return Op(opcode::kBarrier) + String(key) + Number(size);
  }
  static std::string Cancel() { return Op(opcode::kCancelWait); }
  // An event of WATCH_KEY.
  static std::string Event(std::uint8_t type, std::string_view key, std::string_view before,
                           std::string_view after) {
    return Op(type) + String(key) + String(before) + String(after);
  }

  const TcpStoreDecodeLimits decode_limits_;
  DialectHint hint_;
  TcpStoreService service_{{}, kOutputLimit};
};

TEST_F(TcpStoreServiceTest, ValuesAreWrittenAndRead) {
  Client client(*this);
  EXPECT_EQ(client.Ask(Set("/k", "value")), "");
  EXPECT_EQ(client.Ask(Get("/k")), String("value"));
  EXPECT_EQ(client.Ask(Op(opcode::kAppend) + String("/k") + String("+") + Get("/k")),
            String("value+"));
  EXPECT_EQ(client.Ask(Op(opcode::kAppend) + String("/new") + String("n") + Get("/new")),
            String("n"));
  EXPECT_EQ(client.Ask(Op(opcode::kDeleteKey) + String("/k")), Number(1));
  EXPECT_EQ(client.Ask(Op(opcode::kDeleteKey) + String("/k")), Number(0));
  EXPECT_EQ(client.Ask(Op(opcode::kPing) + Hex("a3 61 00 00")), Hex("a3 61 00 00"));
}

TEST_F(TcpStoreServiceTest, MissingKeysReadAsEmpty) {
  Client client(*this);
  EXPECT_EQ(client.Ask(Get("/nobody")), String(""));
  client.Ask(Set("/k", "v"));
  EXPECT_EQ(client.Ask(Op(opcode::kMultiGet) + Strings({"/nobody", "/k", "/nobody"})),
            String("") + String("v") + String(""));
}

TEST_F(TcpStoreServiceTest, NumbersAreAddedAsEveryServerDoes) {
  Client client(*this);
  EXPECT_EQ(client.Ask(Add("init/", 1) + Add("init/", 1)), Number(1) + Number(2));
  EXPECT_EQ(client.Ask(Add("fresh", 0) + Get("fresh")), Number(0) + String("0"));
  EXPECT_EQ(client.Ask(Set("odd", " 12abc") + Add("odd", 1)), Number(13));
  EXPECT_EQ(client.Ask(Set("top", "9223372036854775807") + Add("top", 1)),
            Number(std::numeric_limits<std::int64_t>::min()));
}

TEST_F(TcpStoreServiceTest, AddToTextClosesTheConnection) {
  Client client(*this);
  EXPECT_EQ(client.Ask(Set("word", "abc") + Get("word") + Add("word", 1) + Get("word")),
            "closed: add to 'word': the value is not a number");
  EXPECT_EQ(client.Received(), String("abc")) << "what came before is answered";
}

TEST_F(TcpStoreServiceTest, CompareSetRepliesWhatC10dReplies) {
  Client client(*this);
  const auto compare_set = [&](const std::string& expected, const std::string& desired) {
    return client.Ask(Op(opcode::kCompareSet) + String("k") + String(expected) + String(desired));
  };
  EXPECT_EQ(compare_set("old", "new"), String("old")) << "missing: nothing is stored";
  EXPECT_EQ(client.Ask(Check({"k"})), Op(kNotReady));
  EXPECT_EQ(compare_set("", "first"), String("first"));
  EXPECT_EQ(compare_set("first", "second"), String("second"));
  EXPECT_EQ(compare_set("first", "third"), String("second"));
}

TEST_F(TcpStoreServiceTest, KeysAreCountedAndListed) {
  Client client(*this);
  client.Ask(Add("init/", 1) + Set("/b", "1") + Set("/a", "1"));
  client.Ask(Op(opcode::kQueuePush) + String("/queue") + String("x"));
  EXPECT_EQ(client.Ask(Op(opcode::kNumKeys)), Number(3)) << "init/ counts, queues do not";
  EXPECT_EQ(client.Ask(Op(opcode::kListKeys)), Strings({"/a", "/b", "init/"}));
}

TEST_F(TcpStoreServiceTest, SeveralAreSetAtOnce) {
  Client client(*this);
  EXPECT_EQ(client.Ask(Op(opcode::kMultiSet) + Number(2) + String("a") + String("1") + String("b") +
                       String("2") + Get("b")),
            String("2"));
}

// One WAIT for 100,000 keys blocked the store for a second, and with it all its clients.
TEST_F(TcpStoreServiceTest, WaitForThousandsIsTakenInPartsAndOthersHaveTheirTurn) {
  constexpr int kKeys = 3000;
  std::vector<std::string> keys;
  for (int i = 0; i < kKeys; ++i) keys.push_back(absl::StrCat("key", i));
  const std::string request = Wait(keys);
  // In two pieces, so that the decoder stores its bytes.
  for (const bool has_one_that_is_late : {false, true}) {
    Client waiter(*this), other(*this);
    EXPECT_EQ(waiter.Ask(request.substr(0, 100)), "");
    EXPECT_EQ(waiter.Ask(request.substr(100)), "");
    int parts = 1;
    for (; waiter.has_begun(); ++parts) {
      // A key that exists already, or is created meanwhile, counts.
      EXPECT_EQ(other.Ask(Set(keys[0], "") + Op(opcode::kDeleteKey) + String(keys[0])), Number(1));
      EXPECT_TRUE(service_.Continue(waiter).ok());
    }
    EXPECT_EQ(parts, 3);
    EXPECT_EQ(waiter.Received(), "");
    for (int i = 1; i < kKeys - (has_one_that_is_late ? 1 : 0); ++i) other.Ask(Set(keys[i], ""));
    EXPECT_EQ(waiter.pushes, has_one_that_is_late ? 0 : 1);
    if (has_one_that_is_late) waiter.Leave();
    EXPECT_EQ(waiter.Received(), has_one_that_is_late ? "" : Op(kStopWaiting));
    for (const std::string& key : keys) other.Ask(Op(opcode::kDeleteKey) + String(key));
  }
}

TEST_F(TcpStoreServiceTest, WaitForNothingOrForWhatIsThereIsAnsweredAtOnce) {
  Client client(*this);
  EXPECT_EQ(client.Ask(Wait({}) + Check({})), kStopped + Op(kReady));
  EXPECT_EQ(client.Ask(Set("/k", "") + Wait({"/k", "/k"}) + Check({"/k"})), kStopped + Op(kReady));
}

TEST_F(TcpStoreServiceTest, WaitIsAnsweredOnceWhenTheLastKeyComes) {
  Client waiter(*this), other(*this);
  EXPECT_EQ(waiter.Ask(Wait({"a", "b", "a"})), "");
  other.Ask(Set("a", "1"));
  EXPECT_EQ(waiter.Received(), "");
  EXPECT_EQ(waiter.pushes, 0);
  other.Ask(Add("b", 1));
  EXPECT_EQ(waiter.Received(), kStopped);
  EXPECT_EQ(waiter.pushes, 1);
  other.Ask(Set("a", "2") + Set("b", "2"));
  EXPECT_EQ(waiter.Received(), "");
}

TEST_F(TcpStoreServiceTest, DeletedKeyHasBeenSeen) {
  Client waiter(*this), other(*this);
  waiter.Ask(Wait({"d1", "d2"}));
  other.Ask(Set("d1", "") + Op(opcode::kDeleteKey) + String("d1") + Set("d2", ""));
  EXPECT_EQ(waiter.Received(), kStopped);
  EXPECT_EQ(waiter.Ask(Get("d1")), String(""));
}

TEST_F(TcpStoreServiceTest, CompareSetThatCreatesWakesAndOneThatDoesNotDoesNot) {
  Client waiter(*this), other(*this);
  waiter.Ask(Wait({"k"}));
  other.Ask(Op(opcode::kCompareSet) + String("k") + String("x") + String("y"));
  EXPECT_EQ(waiter.Received(), "");
  other.Ask(Op(opcode::kCompareSet) + String("k") + String("") + String("y"));
  EXPECT_EQ(waiter.Received(), kStopped);
}

TEST_F(TcpStoreServiceTest, RequestsBehindAParkedWaitAreServedAndTheWaitStays) {
  Client client(*this), other(*this);
  EXPECT_EQ(client.Ask(Wait({"late"}) + Add("n", 1)), Number(1));
  other.Ask(Set("late", ""));
  EXPECT_EQ(client.Received(), kStopped);
  EXPECT_EQ(client.Ask(Wait({"own"}) + Set("own", "") + Get("own")), kStopped + String(""));
}

TEST_F(TcpStoreServiceTest, ConnectionMayParkTwoWaits) {
  Client client(*this), other(*this);
  client.Ask(Wait({"a"}) + Wait({"b"}));
  other.Ask(Set("b", ""));
  EXPECT_EQ(client.Received(), kStopped);
  other.Ask(Set("a", ""));
  EXPECT_EQ(client.Received(), kStopped);
}

TEST_F(TcpStoreServiceTest, CancelBeforeTheKeyComes) {
  Client waiter(*this), other(*this);
  EXPECT_EQ(waiter.Ask(Wait({"k"}) + Cancel()), kCancelled);
  other.Ask(Set("k", ""));
  EXPECT_EQ(waiter.Received(), "") << "no stray 00";
  EXPECT_EQ(waiter.Ask(Get("k")), String(""));
}

TEST_F(TcpStoreServiceTest, CancelAfterTheKeyHasCome) {
  Client waiter(*this), other(*this);
  waiter.Ask(Wait({"k"}));
  other.Ask(Set("k", ""));
  EXPECT_EQ(waiter.Ask(Cancel()), kStopped + kCancelled);
  other.Ask(Op(opcode::kDeleteKey) + String("k") + Set("k", ""));
  EXPECT_EQ(waiter.Received(), "");
}

TEST_F(TcpStoreServiceTest, CancelWithoutAWaitIsAnswered) {
  Client client(*this);
  EXPECT_EQ(client.Ask(Cancel() + Cancel()), kCancelled + kCancelled);
}

// get() returned garbage after a wait() had timed out: the late 00 was read as part of its reply.
TEST_F(TcpStoreServiceTest, LegacyClientThatGoesOnHasGivenUpItsWait) {
  Client waiter(*this, ""), other(*this);
  EXPECT_EQ(waiter.Ask(Op(5) + Strings({"k"})), "");
  EXPECT_EQ(waiter.Ask(Op(3) + String("n") + Number(1)), Number(1));
  other.Ask(Set("k", "v"));
  EXPECT_EQ(waiter.Received(), "");
  EXPECT_EQ(waiter.Ask(Op(2) + String("k")), String("v"));
  // Also if the other request is the one that would have woken it.
  waiter.Ask(Op(5) + Strings({"own"}));
  EXPECT_EQ(waiter.Ask(Op(0) + String("own") + String("")), "");
}

TEST_F(TcpStoreServiceTest, ClientOf21CancelsItsWait) {
  Client waiter(*this, ""), other(*this);
  EXPECT_EQ(waiter.Ask(Op(5) + Strings({"k"}) + Op(11)), kCancelled);
  waiter.Ask(Op(5) + Strings({"k"}));
  other.Ask(Set("k", ""));
  EXPECT_EQ(waiter.Ask(Op(11)), kStopped + kCancelled);
}

TEST_F(TcpStoreServiceTest, WaiterThatLeavesIsForgotten) {
  Client other(*this);
  {
    Client waiter(*this);
    waiter.Ask(Wait({"k", "l"}) + Barrier("b", 2));
  }
  other.Ask(Set("k", "") + Set("l", ""));
  EXPECT_EQ(other.Ask(Barrier("b", 2)), kStopped) << "its arrival still counts";
}

TEST_F(TcpStoreServiceTest, BarrierLetsAllGoTogether) {
  Client a(*this), b(*this), c(*this);
  EXPECT_EQ(a.Ask(Barrier("b", 3)), "");
  EXPECT_EQ(b.Ask(Barrier("b", 3)), "");
  EXPECT_EQ(a.Received(), "");
  EXPECT_EQ(c.Ask(Barrier("b", 3)), kStopped);
  EXPECT_EQ(a.Received(), kStopped);
  EXPECT_EQ(b.Received(), kStopped);
  EXPECT_EQ(a.Ask(Barrier("b", 3)), kStopped) << "it stays open";
  EXPECT_EQ(a.Ask(Get("b")), String("4"));
}

TEST_F(TcpStoreServiceTest, BarrierThatIsCancelledStaysCounted) {
  Client a(*this), b(*this);
  EXPECT_EQ(a.Ask(Barrier("b", 2) + Cancel() + Get("b")), kCancelled + String("1"));
  EXPECT_EQ(b.Ask(Barrier("b", 2)), kStopped);
  EXPECT_EQ(a.Received(), "");
}

TEST_F(TcpStoreServiceTest, AddThatReachesTheSizeOpensTheBarrier) {
  Client a(*this), b(*this);
  a.Ask(Barrier("b", 2));
  EXPECT_EQ(b.Ask(Add("b", 1)), Number(2));
  EXPECT_EQ(a.Received(), kStopped);
}

TEST_F(TcpStoreServiceTest, PushWakesOneOfThoseWhoWait) {
  Client a(*this), b(*this), c(*this);
  a.Ask(Wait({"q"}));
  b.Ask(Wait({"q"}));
  c.Ask(Op(opcode::kQueuePush) + String("q") + String("item"));
  EXPECT_EQ(a.Received(), kStopped);
  EXPECT_EQ(b.Received(), "");
  const std::string pop = Op(opcode::kQueuePop) + String("q");
  EXPECT_EQ(c.Ask(Check({"q"}) + Op(opcode::kQueueLength) + String("q")), Op(kReady) + Number(1));
  EXPECT_EQ(a.Ask(pop), Number(1) + String("item"));
  EXPECT_EQ(a.Ask(pop), Number(0)) << "an empty queue has no value to send";
  EXPECT_EQ(b.Received(), "");
}

TEST_F(TcpStoreServiceTest, WatcherIsToldOfEachChange) {
  Client writer(*this);
  Client watcher(*this, "");
  EXPECT_EQ(watcher.Ask(Op(7) + String("/k")), Op(kWatchRegistered));
  writer.Ask(Set("/k", "one"));
  EXPECT_EQ(watcher.Received(), Event(kKeyCreated, "/k", "", "one"));
  writer.Ask(Set("/k", "2") + Set("/other", ""));
  EXPECT_EQ(watcher.Received(), Event(kKeyUpdated, "/k", "one", "2"));
  writer.Ask(Add("/k", 1));
  EXPECT_EQ(watcher.Received(), Event(kKeyUpdated, "/k", "2", "3"));
  writer.Ask(Op(opcode::kCompareSet) + String("/k") + String("x") + String("y"));
  EXPECT_EQ(watcher.Received(), "") << "nothing was stored";
  writer.Ask(Op(opcode::kCompareSet) + String("/k") + String("3") + String("y"));
  EXPECT_EQ(watcher.Received(), Event(kKeyUpdated, "/k", "3", "y"));
  writer.Ask(Op(opcode::kAppend) + String("/k") + String("z"));
  EXPECT_EQ(watcher.Received(), Event(kKeyUpdated, "/k", "y", "yz"));
  writer.Ask(Op(opcode::kDeleteKey) + String("/k") + Op(opcode::kDeleteKey) + String("/k"));
  EXPECT_EQ(watcher.Received(), Event(kKeyDeleted, "/k", "yz", ""));
  writer.Ask(Op(opcode::kMultiSet) + Number(1) + String("/k") + String("1") + Barrier("/k", 2));
  EXPECT_EQ(watcher.Received(),
            Event(kKeyCreated, "/k", "", "1") + Event(kKeyUpdated, "/k", "1", "2"));
  watcher.Leave();
  writer.Ask(Set("/k", ""));
  EXPECT_EQ(watcher.Received(), "");
}

TEST_F(TcpStoreServiceTest, ClientMayNotWatchForever) {
  Client watcher(*this, "");
  for (int i = 0; i < 1024; ++i) {
    ASSERT_EQ(watcher.Ask(Op(7) + String(absl::StrCat(i))), Op(kWatchRegistered));
  }
  EXPECT_EQ(watcher.Ask(Op(7) + String("1")), Op(kWatchRegistered)) << "it is watched already";
  EXPECT_EQ(watcher.Ask(Op(7) + String("x")), "closed: a client may watch no more than 1024 keys");
}

TEST_F(TcpStoreServiceTest, ReplyThatIsTooLargeIsNotPutTogether) {
  Client client(*this);
  client.Ask(Set("large", std::string(300, 'x')));
  EXPECT_EQ(client.Ask(Op(opcode::kMultiGet) + Strings({"large", "large", "large", "large"})),
            "closed: a reply of 1232 bytes is more than the limit of 1000 allows");
  Client lister(*this);
  for (int i = 0; i < 20; ++i) client.Ask(Set(absl::StrCat(i, std::string(50, 'k')), ""));
  EXPECT_EQ(lister.Ask(Op(opcode::kListKeys)).substr(0, 7), "closed:");
}

TEST_F(TcpStoreServiceTest, BrokenLimitClosesTheConnection) {
  Client client(*this);
  EXPECT_EQ(client.Ask(Set(std::string(513, 'k'), "v")),
            absl::StrCat("closed: set '", std::string(64, 'k'),
                         "...': bytes of the key are 513, the limit is 512"));
}

// Would time out if each of them cost time for all others.
TEST_F(TcpStoreServiceTest, TenThousandWaitForOneKey) {
  constexpr int kClients = 10'000;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<Client>(*this));
    ASSERT_EQ(clients.back()->Ask(Wait({"go"})), "");
  }
  Client(*this).Ask(Set("go", ""));
  for (const auto& client : clients) ASSERT_EQ(client->Received(), kStopped);
}

}  // namespace
}  // namespace muster::rendezvous
