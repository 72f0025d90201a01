// The bytes that PyTorch's clients send while two ranks form a gloo group, sent over real sockets:
// captured with tcpdump from 1.13.1 and 2.6.0; what was new in 2.1 is taken from its sources.
// Segments are sent as captured, and the server reads each before the next is sent.
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

#include "rendezvous/fronts/tcpstore_server.h"
#include "test/rendezvous/fronts/tcpstore_bytes.h"
#include "test/rendezvous/fronts/tcpstore_peer.h"

namespace muster::rendezvous {
namespace {

class TcpStoreTranscriptTest : public ::testing::Test {
 protected:
  TcpStoreTranscriptTest() { EXPECT_TRUE(server_.Serve(listener_.fd).ok()); }

  StorePeer Connect() { return StorePeer(io_, listener_.port); }

  // Sends each in a separate segment.
  void Send(StorePeer& peer, const std::vector<std::string>& segments) {
    for (const std::string& segment : segments) {
      peer.Send(segment);
      io_.restart();
      io_.poll();
    }
  }
  // As 1.13 does: the opcode alone, then the rest.
  void SendApart(StorePeer& peer, const std::string& request) {
    Send(peer, {request.substr(0, 1), request.substr(1)});
  }
  // Nothing else has arrived: the reply to this is the next thing received.
  static void ExpectNothingElse(StorePeer& peer, std::uint8_t check) {
    EXPECT_TRUE(peer.Exchange(Op(check) + Strings({"no such key"}), Op(1)));
  }

  boost::asio::io_context io_;
  LoopbackListener listener_ = ListenOnLoopback();
  TcpStoreServer server_{io_};
};

// A sockaddr_in and the uninitialized rest of gloo's stack, in 136 bytes.
std::string Blob(std::string_view address) {
  return Hex(address) + std::string(96, '\x5a') + std::string(32, '\xff');
}

TEST_F(TcpStoreTranscriptTest, TwoRanksOf1x) {
  const std::string job = "//worker/attempt_0/default_pg/";
  const std::string blob0 = Blob("02 00 86 d3 7f 00 00 01");
  const std::string blob1 = Blob("02 00 a8 b7 7f 00 00 01");
  const std::string hostname = String("vm");
  const std::string barrier = String(job + "store_based_barrier_key:1");
  const std::string sequence = job + "0/SEQ_NUM_STORE_KEY";
  ASSERT_EQ(blob0.size(), 136u);

  StorePeer c2 = Connect();
  SendApart(c2, Hex("03 05 00 00 00 00 00 00 00 69 6e 69 74 2f 01 00 00 00 00 00 00 00"));
  EXPECT_EQ(c2.Receive(8), Hex("01 00 00 00 00 00 00 00"));
  StorePeer c3 = Connect();  // for callbacks; silent for the whole job
  SendApart(c2, Op(0) + String(job + "0/0/rank_1") + hostname);
  SendApart(c2, Op(5) + Strings({job + "0/0/rank_0"}));

  StorePeer c4 = Connect();
  SendApart(c4, Op(3) + String("init/") + Number(1));
  EXPECT_EQ(c4.Receive(8), Number(2));
  StorePeer c5 = Connect();
  SendApart(c4, Op(0) + String(job + "0/0/rank_0") + hostname);
  EXPECT_EQ(c2.Receive(1), kStopped);
  SendApart(c2, Op(2) + String(job + "0/0/rank_0"));
  EXPECT_EQ(c2.Receive(10), Hex("02 00 00 00 00 00 00 00 76 6d"));

  SendApart(c2, Op(0) + String(job + "0/0/1") + String(blob1));
  SendApart(c2, Op(5) + Strings({job + "0/0/0"}));
  SendApart(c4, Op(0) + String(job + "0/0/0") + String(blob0));
  EXPECT_EQ(c2.Receive(1), kStopped);
  SendApart(c2, Op(5) + Strings({job + "0/0/0"}));
  EXPECT_EQ(c2.Receive(1), kStopped);
  SendApart(c2, Op(2) + String(job + "0/0/0"));
  EXPECT_EQ(c2.Receive(144), String(blob0));

  SendApart(c2, Op(3) + barrier + Number(1));
  EXPECT_EQ(c2.Receive(8), Number(1));
  SendApart(c2, Op(3) + barrier + Number(0));
  EXPECT_EQ(c2.Receive(8), Number(1));
  SendApart(c4, Op(3) + barrier + Number(1));
  EXPECT_EQ(c4.Receive(8), Number(2));
  SendApart(c2, Op(3) + barrier + Number(0));
  EXPECT_EQ(c2.Receive(8), Number(2));

  SendApart(c2, Op(5) + Strings({sequence}));
  SendApart(c4, Op(0) + String(sequence) + String(Hex("68 45 8b 6b 00 00 00 00")));
  EXPECT_EQ(c2.Receive(1), kStopped);
  SendApart(c2, Op(2) + String(sequence));
  EXPECT_EQ(c2.Receive(16), Hex("08 00 00 00 00 00 00 00 68 45 8b 6b 00 00 00 00"));
  ExpectNothingElse(c2, 4);
  ExpectNothingElse(c4, 4);
  EXPECT_EQ(server_.connections(), 4u);
}

TEST_F(TcpStoreTranscriptTest, TwoRanksOf26) {
  const std::string key0 = String("/default_pg/0//cpu//0/0");
  const std::string key1 = String("/default_pg/0//cpu//0/1");
  const std::string value =
      Raw(std::uint64_t{2}) + "vm" + Raw(std::uint64_t{136}) + std::string(152, '\xa5');
  ASSERT_EQ(value.size(), 170u);

  StorePeer c1 = Connect();
  Send(c1, {Hex("00 ce f7 85 3c"), Hex("0d a3 61 00 00")});
  EXPECT_EQ(c1.Receive(4), Hex("a3 61 00 00"));
  Send(c1, {Hex("04 05 00 00 00 00 00 00 00 69 6e 69 74 2f 01 00 00 00 00 00 00 00")});
  EXPECT_EQ(c1.Receive(8), Number(1));
  Send(c1, {Op(1) + key1 + String(value)});
  Send(c1, {Op(6) + Hex("01 00 00 00 00 00 00 00") + key0});

  StorePeer c2 = Connect();
  Send(c2, {Hex("00 ce f7 85 3c"), Hex("0d a2 61 00 00")});
  EXPECT_EQ(c2.Receive(4), Hex("a2 61 00 00"));
  Send(c2, {Op(4) + String("init/") + Number(1)});
  EXPECT_EQ(c2.Receive(8), Number(2));
  Send(c2, {Op(1) + key0 + String(value)});
  EXPECT_EQ(c1.Receive(1), kStopped);
  EXPECT_TRUE(c1.Exchange(Op(6) + Raw(std::uint64_t{1}) + key0, kStopped));
  EXPECT_TRUE(c1.Exchange(Op(3) + key0, String(value)));
  EXPECT_TRUE(c2.Exchange(Op(6) + Raw(std::uint64_t{1}) + key1, kStopped));
  EXPECT_TRUE(c2.Exchange(Op(3) + key1, String(value)));
  ExpectNothingElse(c1, 5);
  ExpectNothingElse(c2, 5);
}

TEST_F(TcpStoreTranscriptTest, TwoRanksOf21) {
  StorePeer a = Connect(), b = Connect();
  EXPECT_TRUE(a.Exchange(Op(3) + String("init/") + Number(1), Number(1)));
  EXPECT_TRUE(b.Exchange(Op(3) + String("init/") + Number(1), Number(2)));
  // A wait that times out, and one that does not.
  a.Send(Op(5) + Strings({"/addr/1"}));
  EXPECT_TRUE(a.Exchange(Op(11), kCancelled));
  a.Send(Op(5) + Strings({"/addr/1"}));
  b.Send(Op(10) + Number(2) + String("/addr/1") + String("one") + String("/addr/2") + String("2"));
  EXPECT_EQ(a.Receive(1), kStopped);
  EXPECT_TRUE(a.Exchange(Op(9) + Strings({"/addr/1", "/addr/2"}), String("one") + String("2")));
  EXPECT_TRUE(a.Exchange(Op(7) + String("/addr/2"), Number(1)));
  b.Send(Op(8) + String("/log") + String("ab"));
  EXPECT_TRUE(b.Exchange(Op(2) + String("/log"), String("ab")));
  EXPECT_TRUE(b.Exchange(Op(1) + String("/cas") + String("") + String("x"), String("x")));
  EXPECT_TRUE(b.Exchange(Op(6), Number(4)));
  ExpectNothingElse(a, 4);
  ExpectNothingElse(b, 4);
}

TEST_F(TcpStoreTranscriptTest, OldestAndNewestShareAPort) {
  StorePeer oldest = Connect(), newest = Connect();
  SendApart(oldest, Op(5) + Strings({"/k"}));
  newest.Send(Hello() + Op(opcode::kSet) + String("/k") + String("from 2.14"));
  EXPECT_EQ(oldest.Receive(1), kStopped);
  EXPECT_TRUE(oldest.Exchange(Op(2) + String("/k"), String("from 2.14")));
  SendApart(oldest, Op(0) + String("/l") + String("from 1.13"));
  EXPECT_TRUE(newest.Exchange(Op(opcode::kWait) + Strings({"/l"}), kStopped));
  EXPECT_TRUE(newest.Exchange(Op(opcode::kGet) + String("/l"), String("from 1.13")));
}

// delete_key() of 1.13 sends nothing after its key; the server must not wait for more forever.
TEST_F(TcpStoreTranscriptTest, DeleteOf1xIsAnsweredThoughItMightBeAnAppend) {
  StorePeer client = Connect();
  SendApart(client, Op(0) + String("/k") + String("v"));
  SendApart(client, Op(8) + String("/k"));
  EXPECT_EQ(client.Receive(8), Number(1));
  SendApart(client, Op(8) + String("/k"));
  EXPECT_EQ(client.Receive(8), Number(0));
}

TEST_F(TcpStoreTranscriptTest, AppendOf21MayComeInTwoSegments) {
  StorePeer client = Connect();
  Send(client, {Op(6)});
  EXPECT_EQ(client.Receive(8), Number(0));
  Send(client, {Op(8) + String("/log"), String("text")});
  EXPECT_TRUE(client.Exchange(Op(2) + String("/log"), String("text")));
}

TEST_F(TcpStoreTranscriptTest, CallbackConnectionOf1xIsToldOfChanges) {
  StorePeer callback = Connect(), main = Connect();
  SendApart(callback, Op(7) + String("/k"));
  EXPECT_EQ(callback.Receive(1), Op(3));
  SendApart(main, Op(0) + String("/k") + String("new"));
  const std::string event = Op(1) + String("/k") + String("") + String("new");
  EXPECT_EQ(callback.Receive(event.size()), event);
}

TEST_F(TcpStoreTranscriptTest, ConversationMayComeByteByByte) {
  StorePeer client = Connect();
  const std::string bytes = Hello() + Op(opcode::kSet) + String("/k") + String("value") +
                            Op(opcode::kWait) + Strings({"/k"}) + Op(opcode::kGet) + String("/k") +
                            Op(opcode::kCancelWait) + Op(opcode::kPing) + "ping";
  for (const char byte : bytes) Send(client, {std::string(1, byte)});
  const std::string replies = kStopped + String("value") + kCancelled + "ping";
  EXPECT_EQ(client.Receive(replies.size()), replies);
}

}  // namespace
}  // namespace muster::rendezvous
