#include "launcher/cli/launch_config.h"

#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

TEST(OmpTest, SeveralWorkersGetOneThreadEach) {
  const auto omp = DefaultOmpThreads(2, {});
  ASSERT_TRUE(omp);
  EXPECT_EQ(omp->threads, "1");
  EXPECT_EQ(omp->note, "OMP_NUM_THREADS=1 for each worker; set it to choose otherwise");
}

TEST(OmpTest, OneWorkerOrTheUsersChoiceIsLeftAlone) {
  EXPECT_EQ(DefaultOmpThreads(1, {}), std::nullopt);
  EXPECT_EQ(DefaultOmpThreads(8, {{"OMP_NUM_THREADS", "4"}}), std::nullopt);
  EXPECT_EQ(DefaultOmpThreads(8, {{"OMP_NUM_THREADS", ""}}), std::nullopt);
}

}  // namespace
}  // namespace muster::launcher
