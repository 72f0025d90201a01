#include "trainer/app/training/reports.h"

#include <sys/mman.h>

#include <cstring>

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

TEST(PeakMemoryTest, IsNotForgottenWhenMemoryIsGivenBack) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const std::int64_t before = PeakResidentBytes();
  EXPECT_GT(before, 0);
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::memset(memory, 1, kBytes);
  ASSERT_EQ(munmap(memory, kBytes), 0);
  EXPECT_GT(PeakResidentBytes(), before + static_cast<std::int64_t>(kBytes / 2));
}

}  // namespace
}  // namespace muster::trainer
