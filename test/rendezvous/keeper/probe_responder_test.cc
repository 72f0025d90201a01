#include "rendezvous/keeper/port_holder.h"

#include <poll.h>

#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

#include "rendezvous/net/listening_socket.h"
#include "test/rendezvous/keeper/caller.h"

namespace muster::rendezvous {
namespace {

constexpr char kProbedSession[] = "0123456789abcdef";

class ProbeResponderTest : public testing::Test {
 protected:
  ProbeResponderTest() : sockets_(*ListenAt(io_, {"127.0.0.1", 0})), port_(PortOf(sockets_)) {
    for (auto& socket : sockets_) fds_.push_back(socket.native_handle());
  }

  // Handles events until there have been none for a moment; returns whether room was requested.
  static bool Handle(ProbeResponder& desk) {
    bool room_is_asked_for = false;
    pollfd one = {desk.fd(), POLLIN, 0};
    while (poll(&one, 1, 50) > 0) room_is_asked_for = desk.Handle() || room_is_asked_for;
    return room_is_asked_for;
  }

  boost::asio::io_context io_;
  std::vector<boost::asio::ip::tcp::acceptor> sockets_;
  const std::uint16_t port_;
  std::vector<int> fds_;
  const ProbeKey key_ = MakeKnockKey();
  const ProbeNonce nonce_ = MakeProbeNonce();
  const std::string line_ = FormatProbe(kProbedSession, nonce_);
};

TEST_F(ProbeResponderTest, EachWholeKnockIsAnsweredAndItsConnectionEnds) {
  for (const ProbeWord word : {ProbeWord::kPaused, ProbeWord::kGone}) {
    ProbeResponder desk(fds_, key_, word);
    desk.Open();
    const Caller at_once(port_), in_pieces(port_);
    at_once.Say(line_);
    in_pieces.Say(line_.substr(0, 50));
    Handle(desk);
    in_pieces.Say(line_.substr(50));
    Handle(desk);
    for (const Caller* caller : {&at_once, &in_pieces}) {
      EXPECT_EQ(
          VerifyProbeAnswer(SecretFor(key_, kProbedSession), nonce_, caller->HearAll().value()),
          word);
    }
    EXPECT_EQ(desk.answered(), 2u);
  }
}

TEST_F(ProbeResponderTest, WhatIsNoKnockIsClosedWithoutAWord) {
  ProbeResponder desk(fds_, key_, ProbeWord::kPaused);
  desk.Open();
  for (const std::string& text :
       {std::string("PRI * HTTP/2.0\r\n"), std::string("DEAD token\n"), std::string("\x03\x00", 2),
        line_ + line_, std::string(10'000, 'K'), std::string(kMakeRoom)}) {
    const Caller caller(port_);
    caller.Say(text);
    EXPECT_FALSE(Handle(desk)) << text;
    EXPECT_EQ(caller.HearAll(), "") << text;
  }
}

TEST_F(ProbeResponderTest, ClosedDeskLeavesConnectionsToWhoeverAcceptsNext) {
  ProbeResponder desk(fds_, key_, ProbeWord::kPaused);
  EXPECT_LT(desk.fd(), 0);
  const Caller early(port_);
  early.Say(line_);
  EXPECT_FALSE(desk.Handle());
  EXPECT_TRUE(early.HearsNothing());
  desk.Open();
  Handle(desk);
  EXPECT_NE(early.HearAll(), "");
  const Caller silent(port_);
  Handle(desk);
  desk.Close();
  EXPECT_EQ(silent.HearAll(), "") << "it was not answered, and never will be";
  const Caller late(port_);
  late.Say(line_);
  EXPECT_TRUE(late.HearsNothing());
}

// Silent connections do not keep the next agent out.
TEST_F(ProbeResponderTest, SilentOnesGiveWayToThoseWhoSpeak) {
  ProbeResponder desk(fds_, key_, ProbeWord::kPaused);
  desk.Open();
  std::deque<Caller> silent;
  for (int i = 0; i < 300; ++i) {
    silent.emplace_back(port_);
    desk.Handle();
  }
  EXPECT_EQ(silent.front().HearAll(), "");
  EXPECT_TRUE(silent.back().HearsNothing());
  const Caller caller(port_);
  caller.Say(line_);
  Handle(desk);
  EXPECT_NE(caller.HearAll(), "");
}

TEST_F(ProbeResponderTest, WhoAsksForRoomOnThisMachineIsHeardWhereNobodyComesBack) {
  ProbeResponder desk(fds_, key_, ProbeWord::kGone);
  desk.Open();
  const Caller next(port_);
  next.Say(kMakeRoom);
  EXPECT_TRUE(Handle(desk));
  EXPECT_TRUE(next.HearsNothing()) << "its connection ends when the port is free";
}

}  // namespace
}  // namespace muster::rendezvous
