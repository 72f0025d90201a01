#include "rendezvous/net/endpoint.h"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

struct Case {
  const char* text;
  Endpoint expected;
};

TEST(EndpointTest, EveryFormThatTorchrunTakesIsRead) {
  const Case cases[] = {
      {"node0:29500", {"node0", 29500}},
      {"node0", {"node0", 29400}},
      {" node0:1 ", {"node0", 1}},
      {"10.0.0.1:65535", {"10.0.0.1", 65535}},
      {"localhost:0", {"localhost", 0}},
      {"my_host.example.org:80", {"my_host.example.org", 80}},
      {"[::1]:29400", {"::1", 29400}},
      {"[fe80::1]", {"fe80::1", 29400}},
      // The port follows the last colon, brackets or not.
      {"::1:29400", {"::1", 29400}},
  };
  for (const Case& c : cases) {
    const auto endpoint = ParseEndpoint(c.text, kDefaultRendezvousPort);
    ASSERT_TRUE(endpoint.ok()) << c.text << ": " << endpoint.status();
    EXPECT_EQ(*endpoint, c.expected) << c.text;
  }
}

TEST(EndpointTest, WhatIsNoEndpointIsRefused) {
  for (const char* text :
       {"", ":29400", "host:", "host:65536", "host:123456", "host:-1", "host:+1", "host:8 0",
        "ho st:80", "host/x:80", "http://host:80", "[::1", "::1", "[]:80", "host:port"}) {
    EXPECT_FALSE(ParseEndpoint(text, kDefaultRendezvousPort).ok()) << text;
  }
}

TEST(EndpointTest, PortIsRequiredWhereThereIsNoDefault) {
  EXPECT_TRUE(ParseEndpoint("node0:1", std::nullopt).ok());
  const auto endpoint = ParseEndpoint("node0", std::nullopt);
  EXPECT_EQ(endpoint.status().message(),
            "has no port; write HOST:PORT, with brackets around an IPv6 address");
}

TEST(EndpointTest, LoopbackIsWhatIsWrittenAndNotWhatANameLeadsTo) {
  for (const char* host : {"localhost", "127.0.0.1", "127.0.1.1", "127.255.0.3", "::1"}) {
    EXPECT_TRUE(IsLoopbackLiteral(host)) << host;
  }
  for (const char* host : {"", "10.0.0.1", "0.0.0.0", "128.0.0.1", "::", "fe80::1", "node0",
                           "localhost.example.org", "127.example.org"}) {
    EXPECT_FALSE(IsLoopbackLiteral(host)) << host;
  }
}

TEST(EndpointTest, TextReadsBackAsTheSameEndpoint) {
  for (const Endpoint& endpoint : {Endpoint{"node0", 1}, Endpoint{"::1", 29400}}) {
    EXPECT_EQ(*ParseEndpoint(ToString(endpoint), std::nullopt), endpoint);
  }
  EXPECT_EQ(ToString({"::1", 80}), "[::1]:80");
}

TEST(EndpointTest, SeveralPlacesAreOneEndpoint) {
  const Endpoint endpoint = *ParseEndpoints("a,b:1,[::1]:2", 29400);
  EXPECT_EQ(ToString(endpoint), "a:29400,b:1,[::1]:2");
  EXPECT_EQ(*ParseEndpoints(ToString(endpoint), std::nullopt), endpoint);
  EXPECT_EQ(EachOf(endpoint), (std::vector<Endpoint>{{"a", 29400}, {"b", 1}, {"::1", 2}}));
  EXPECT_EQ(EachOf(*ParseEndpoints("a", 1)), (std::vector<Endpoint>{{"a", 1}}));
  for (const char* bad : {"", "a,", ",a", "a,,b", "a:0,b", "a,b:0", "a b,c"}) {
    EXPECT_FALSE(ParseEndpoints(bad, 1).ok()) << bad;
  }
}

}  // namespace
}  // namespace muster::rendezvous
