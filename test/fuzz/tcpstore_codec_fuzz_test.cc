// Runs the fuzzer's function on its seeds (tcpstore_codec_seeds.txt), on each seed truncated and
// with each byte changed, and with every kind of split.
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

TEST(TcpStoreCodecFuzzTest, SeedsPassWhenTheyAreCutShortOrChanged) {
  for (const std::string& seed : Seeds()) {
    for (std::size_t at = 0; at < seed.size(); ++at) {
      RunOnce(seed.substr(0, at));
      for (const int flip : {0x01, 0x08, 0x80, 0xff}) {
        std::string changed = seed;
        changed[at] = static_cast<char>(changed[at] ^ flip);
        RunOnce(changed);
      }
    }
  }
}

}  // namespace
}  // namespace muster::rendezvous
