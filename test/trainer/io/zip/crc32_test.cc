#include "trainer/io/zip/crc32.h"

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

std::string RandomBytes(std::size_t count) {
  std::mt19937 random(1);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::uint32_t OfZlib(std::uint32_t crc, const char* data, std::size_t count) {
  return static_cast<std::uint32_t>(
      crc32_z(crc, reinterpret_cast<const unsigned char*>(data), count));
}

TEST(Crc32Test, IsTheOneOfTheStandard) {
  EXPECT_EQ(Crc32(0, "123456789", 9), 0xcbf43926U);
  EXPECT_EQ(Crc32(0, nullptr, 0), 0U);
}

TEST(Crc32Test, EqualsThatOfZlibForAnyLengthPlaceAndBeginning) {
  const std::string bytes = RandomBytes(1000);
  for (std::size_t count = 0; count < 900; ++count) {
    const char* const data = bytes.data() + count % 17;
    for (const std::uint32_t crc : {0U, 1U, 0x12345678U, 0xffffffffU}) {
      ASSERT_EQ(Crc32(crc, data, count), OfZlib(crc, data, count)) << count << " after " << crc;
    }
  }
}

TEST(Crc32Test, OfPartsIsThatOfTheWhole) {
  const std::string bytes = RandomBytes(100'000);
  for (const std::size_t cut : {1, 63, 64, 65, 4096, 99'999}) {
    const std::uint32_t first = Crc32(0, bytes.data(), cut);
    EXPECT_EQ(Crc32(first, bytes.data() + cut, bytes.size() - cut),
              OfZlib(0, bytes.data(), bytes.size()))
        << cut;
  }
}

}  // namespace
}  // namespace muster::trainer
