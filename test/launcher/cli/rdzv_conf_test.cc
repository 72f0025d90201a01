#include "launcher/cli/rendezvous_flags.h"

#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

RendezvousTimeouts TimeoutsOf(const char* text) {
  const auto conf = ParseRdzvConf(text);
  EXPECT_TRUE(conf.ok()) << text << ": " << conf.status();
  return conf.ok() ? conf->timeouts : RendezvousTimeouts{};
}

TEST(RdzvConfTest, EachKeySetsItsTimeout) {
  EXPECT_EQ(TimeoutsOf(""), RendezvousTimeouts{});
  EXPECT_EQ(TimeoutsOf("join_timeout=7").join, seconds(7));
  EXPECT_EQ(TimeoutsOf("timeout=8").join, seconds(8));
  EXPECT_EQ(TimeoutsOf("timeout=8,join_timeout=7").join, seconds(7));
  EXPECT_EQ(TimeoutsOf("last_call_timeout=0.5").last_call, milliseconds(500));
  EXPECT_EQ(TimeoutsOf("connect_timeout=9").connect, seconds(9));
  EXPECT_EQ(TimeoutsOf("read_timeout=10").connect, seconds(10));
  EXPECT_EQ(TimeoutsOf("lease_timeout=11").lease, seconds(11));
  EXPECT_EQ(TimeoutsOf("lease=0.5").lease, milliseconds(500));
  EXPECT_EQ(TimeoutsOf("").lease, seconds(3));
  EXPECT_EQ(TimeoutsOf("reconnect_timeout=7").reconnect, seconds(7));
}

TEST(RdzvConfTest, TorchrunsKeepAliveKeysMakeTheLease) {
  EXPECT_EQ(TimeoutsOf("keep_alive_interval=2,keep_alive_max_attempt=4").lease, seconds(8));
  EXPECT_EQ(TimeoutsOf("keep_alive_interval=2").lease, seconds(6));
  EXPECT_EQ(TimeoutsOf("keep_alive_max_attempt=2").lease, seconds(10));
  EXPECT_EQ(TimeoutsOf("keep_alive_interval=2,lease_timeout=60").lease, seconds(60));
  EXPECT_EQ(TimeoutsOf("keep_alive_interval=2").keep_alive_interval, seconds(2));
}

TEST(RdzvConfTest, SeveralKeepAlivesFitIntoALease) {
  EXPECT_EQ(TimeoutsOf("lease_timeout=0.3").keep_alive_interval, milliseconds(100));
  EXPECT_EQ(TimeoutsOf("lease_timeout=6,keep_alive_interval=30").keep_alive_interval, seconds(2));
  EXPECT_EQ(TimeoutsOf("lease_timeout=0.001").keep_alive_interval, milliseconds(1));
}

TEST(RdzvConfTest, UnknownKeysAndQuotesAroundTheWholeAreIgnored) {
  EXPECT_EQ(TimeoutsOf("'join_timeout=5,last_call_timeout=1,timeout=5'").join, seconds(5));
  EXPECT_EQ(TimeoutsOf("is_host=1,store_type=tcp"), RendezvousTimeouts{});
  EXPECT_EQ(TimeoutsOf(" join_timeout = 5 , x=y=z").join, seconds(5));
}

TEST(RdzvConfTest, OnlyAGivenJoinTimeoutCountsAsGiven) {
  EXPECT_TRUE(ParseRdzvConf("timeout=600")->join_given);
  EXPECT_FALSE(ParseRdzvConf("last_call_timeout=1")->join_given);
}

TEST(RdzvConfTest, WhatIsNoConfigurationIsRefused) {
  for (const char* text :
       {"join_timeout", "join_timeout=", "=5", "join_timeout=5,", "join_timeout=0",
        "join_timeout=-1", "join_timeout=soon", "join_timeout=nan", "join_timeout=inf",
        "join_timeout=1e300", "keep_alive_max_attempt=0", "keep_alive_max_attempt=x"}) {
    EXPECT_FALSE(ParseRdzvConf(text).ok()) << text;
  }
}

TEST(RdzvConfTest, HostIsSaidInAnyOfTorchrunsWords) {
  EXPECT_EQ(ParseRdzvConf("")->is_host, std::nullopt);
  for (const char* yes : {"1", "true", "T", "yes", "y"}) {
    EXPECT_EQ(ParseRdzvConf(std::string("is_host=") + yes)->is_host, true) << yes;
  }
  for (const char* no : {"0", "False", "f", "no", "n"}) {
    EXPECT_EQ(ParseRdzvConf(std::string("is_host=") + no)->is_host, false) << no;
  }
  EXPECT_EQ(ParseRdzvConf("is_host=maybe").status().message(), "has a bad is_host; give it 1 or 0");
}

TEST(RdzvConfTest, RefusalsAreTrustedWhereTheUserSaysSo) {
  EXPECT_FALSE(ParseRdzvConf("")->trust_refusals);
  EXPECT_TRUE(ParseRdzvConf("trust_refusals=true")->trust_refusals);
  EXPECT_FALSE(ParseRdzvConf("trust_refusals=0")->trust_refusals);
  EXPECT_EQ(ParseRdzvConf("trust_refusals=maybe").status().message(),
            "has a bad trust_refusals; give it 1 or 0");
}

TEST(RdzvConfTest, StoreInAFileIsRefused) {
  EXPECT_TRUE(ParseRdzvConf("store_type=tcp").ok());
  EXPECT_EQ(ParseRdzvConf("store_type=file").status().message(),
            "asks for a store_type other than tcp, the only one that Muster has; leave it out and "
            "give an endpoint HOST:PORT");
}

}  // namespace
}  // namespace muster::launcher
