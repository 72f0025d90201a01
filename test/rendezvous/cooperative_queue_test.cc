#include "rendezvous/server/tenant_openings.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

namespace muster::rendezvous {
namespace {

// "With thirty tenants that each had much in their stores, a daemon that took over lost the lead":
// the parts of all of them came before it could be kept alive.
TEST(CooperativeQueueTest, WhateverElseIsDueWaitsForOnePart) {
  boost::asio::io_context io;
  CooperativeQueue turns(io);
  std::string order;
  for (const char* part : {"1", "2", "3"}) {
    turns.Add([&order, &turns, part] {
      order += part;
      if (*part == '1') turns.Add([&order] { order += "4"; });
    });
  }
  boost::asio::post(io, [&] {
    order += "a";
    boost::asio::post(io, [&] { order += "b"; });
  });
  EXPECT_EQ(order, "");
  io.run();
  EXPECT_EQ(order, "1a2b34");
}

TEST(CooperativeQueueTest, MayBeDestroyedByAPart) {
  boost::asio::io_context io;
  auto turns = std::make_unique<CooperativeQueue>(io);
  turns->Add([&] { turns.reset(); });
  turns->Add([] { FAIL() << "it is gone"; });
  io.run();
  EXPECT_EQ(turns, nullptr);
}

}  // namespace
}  // namespace muster::rendezvous
