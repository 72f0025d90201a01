#include "trainer/comm/round_store.h"

#include <memory>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""min;

TEST(CallWithinTest, ReturnsAndThrowsWhatTheCallDoes) {
  EXPECT_EQ(CallWithin<std::string>(1min, "say", [] { return "yes"; }), "yes");
  try {
    CallWithin<int>(1min, "count", []() -> int { throw std::invalid_argument("no numbers"); });
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "no numbers");
  }
}

// A rank that died before NCCL had connected left the others waiting forever.
TEST(CallWithinTest, LeavesACallThatDoesNotEnd) {
  const auto never = std::make_shared<std::promise<int>>();
  try {
    CallWithin<int>(10ms, "connect", [never] { return never->get_future().get(); });
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "connect was not done within 0 s");
  }
  never->set_value(0);  // the thread ends by itself
}

}  // namespace
}  // namespace muster::trainer
