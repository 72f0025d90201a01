// Runs a fuzzer's function on its seeds (the file that is named on the command line), on each seed
// truncated, and with each byte changed.
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/fuzz/fuzz.h"

namespace {

std::string g_seeds;

std::vector<std::string> Seeds() {
  std::ifstream file(g_seeds);
  std::vector<std::string> seeds;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::string bytes;
    for (std::size_t at = 0; at + 1 < line.size(); at += 2) {
      bytes += static_cast<char>(std::stoi(line.substr(at, 2), nullptr, 16));
    }
    seeds.push_back(bytes);
  }
  return seeds;
}

void RunOnce(const std::string& input) {
  // Memory of its own, so that a look beyond its end is found.
  const std::vector<std::uint8_t> own(input.begin(), input.end());
  ASSERT_EQ(LLVMFuzzerTestOneInput(own.data(), own.size()), 0);
}

TEST(FuzzSeedsTest, SeedsPassWhenTheyAreCutShortOrChanged) {
  const std::vector<std::string> seeds = Seeds();
  ASSERT_GE(seeds.size(), 3u) << g_seeds;
  for (const std::string& seed : seeds) {
    RunOnce(seed);
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

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1) g_seeds = argv[1];
  return RUN_ALL_TESTS();
}
