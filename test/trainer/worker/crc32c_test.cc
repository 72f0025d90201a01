#include "trainer/worker/step_log.h"

#include <string>

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

// The test vectors of RFC 3720, appendix B.4.
TEST(Crc32cTest, IsThatOfTheStandard) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  std::string rising;
  for (char c = 0; c < 32; ++c) rising += c;
  EXPECT_EQ(Crc32c(rising), 0x46DD794Eu);
}

// The mask turns right by 15 bits and adds a constant; 0 shows the constant alone.
TEST(Crc32cTest, IsMaskedAsTfRecordWantsIt) {
  EXPECT_EQ(MaskedCrc32c(""), 0xA282EAD8u);
  EXPECT_EQ(MaskedCrc32c("123456789"), 0xC78AB0E5u);
}

}  // namespace
}  // namespace muster::trainer
