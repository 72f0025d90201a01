#include "worker/hang/file_watchdog.h"

#include <csignal>
#include <string>

#include <gtest/gtest.h>

namespace muster::worker {
namespace {

TEST(TimerRequestTest, AsPyTorchWritesIt) {
  const auto request = ParseTimerRequest(
      R"({"version": 1, "pid": 17, "scope_id": "step", "expiration_time": 1700000000.5, "signal": 15})");
  EXPECT_EQ(request, (TimerRequest{17, "step", 1700000000.5, 15}));
  EXPECT_FALSE(request->IsRelease());
}

TEST(TimerRequestTest, ReleaseInBothSpellings) {
  for (const char* minus_one : {"-1", "\"-1\"", "-1.0"}) {
    const auto request =
        ParseTimerRequest(std::string(R"({"version":1,"pid":17,"scope_id":"s","signal":0,)") +
                          R"("expiration_time":)" + minus_one + "}");
    ASSERT_TRUE(request.has_value()) << minus_one;
    EXPECT_TRUE(request->IsRelease()) << minus_one;
  }
}

TEST(TimerRequestTest, MissingSignalIsSigkill) {
  EXPECT_EQ(ParseTimerRequest(R"({"pid":17,"scope_id":"s","expiration_time":5})")->signal, SIGKILL);
}

TEST(TimerRequestTest, WhatIsNoRequest) {
  const char* const lines[] = {
      "",
      "x",
      "{",
      "[]",
      "17",
      "null",
      "{}",
      "\xff\xfe",
      R"({"pid":0,"scope_id":"s","expiration_time":5})",
      R"({"pid":-17,"scope_id":"s","expiration_time":5})",
      R"({"pid":1e12,"scope_id":"s","expiration_time":5})",
      R"({"pid":"x","scope_id":"s","expiration_time":5})",
      R"({"pid":17,"scope_id":7,"expiration_time":5})",
      R"({"pid":17,"expiration_time":5})",
      R"({"pid":17,"scope_id":"s"})",
      R"({"pid":17,"scope_id":"s","expiration_time":"nan"})",
      R"({"pid":17,"scope_id":"s","expiration_time":1e999})",
      R"({"pid":17,"scope_id":"s","expiration_time":5,"signal":65})",
      R"({"pid":17,"scope_id":"s","expiration_time":5,"signal":[9]})",
      R"({"pid":17,"scope_id":"s","expiration_time":5} x)",
  };
  for (const char* line : lines) EXPECT_FALSE(ParseTimerRequest(line).has_value()) << line;
  EXPECT_FALSE(ParseTimerRequest(std::string(4000, '[')).has_value());
}

}  // namespace
}  // namespace muster::worker
