// Beside fuzz_seeds_test.cc: runs the fuzzer's function on its seeds with every kind of split.
#include "test/fuzz/fuzz.h"

#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/rendezvous/fronts/tcpstore_bytes.h"

namespace muster::rendezvous {
namespace {

std::vector<std::string> Seeds() {
  std::ifstream file("test/fuzz/tcpstore_codec_seeds.txt");
  std::vector<std::string> seeds;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.front() != '#') seeds.push_back(Hex(line));
  }
  return seeds;
}

void RunOnce(const std::string& input) {
  ASSERT_EQ(
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size()), 0);
}

TEST(TcpStoreCodecFuzzTest, SeedsPassHoweverTheyAreSplit) {
  const std::vector<std::string> seeds = Seeds();
  ASSERT_GE(seeds.size(), 10u);
  for (std::string seed : seeds) {
    for (int choice = 0; choice < 256; ++choice) {
      seed.front() = static_cast<char>(choice);
      RunOnce(seed);
    }
  }
}

}  // namespace
}  // namespace muster::rendezvous
