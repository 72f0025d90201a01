// A deliberate data race: under --config=tsan it must be reported, or a clean run of the other
// tests would prove nothing.
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

namespace muster::rendezvous {
namespace {

#if defined(__SANITIZE_THREAD__)
void Race() {
  static int shared = 0;
  std::thread other([] { ++shared; });
  ++shared;
  other.join();
  std::exit(0);
}

TEST(TsanCanaryTest, APlantedRaceIsReported) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  // 66 is ThreadSanitizer's exit code after a report.
  EXPECT_EXIT(Race(), testing::ExitedWithCode(66), "data race");
}
#else
TEST(TsanCanaryTest, APlantedRaceIsReported) {
  GTEST_SKIP() << "not built with --config=tsan";
}
#endif

}  // namespace
}  // namespace muster::rendezvous
