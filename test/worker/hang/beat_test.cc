// What is a beat, and what is not.
#include "worker/hang/beat.h"

#include <string>

#include <gtest/gtest.h>

namespace muster::worker {
namespace {

TEST(BeatTest, RankAlone) {
  EXPECT_EQ(ParseBeat("beat 3"), (Beat{.rank = 3}));
}

TEST(BeatTest, RankAndStep) {
  EXPECT_EQ(ParseBeat("beat 0 9000000000"), (Beat{.rank = 0, .step = 9'000'000'000}));
}

TEST(BeatTest, AsAShellSendsIt) {
  EXPECT_EQ(ParseBeat("beat 3 7\n"), (Beat{.rank = 3, .step = 7}));
  EXPECT_EQ(ParseBeat("beat  3 \r\n"), (Beat{.rank = 3}));
}

TEST(BeatTest, AnythingElseIsNone) {
  for (const char* text :
       {"", "\n", "beat", "beat ", "BEAT 3", "beats 3", "beat three", "beat -1", "beat +1",
        "beat 3.5", "beat 3 -1", "beat 3 x", "beat 3 7 9", "beat 3\nbeat 4", "beat 4294967296",
        "beat 3 9223372036854775808", "3 7", " "}) {
    EXPECT_EQ(ParseBeat(text), std::nullopt) << '"' << text << '"';
  }
  EXPECT_EQ(ParseBeat(std::string_view("beat 3\0", 7)), std::nullopt);
  EXPECT_EQ(ParseBeat("beat 3" + std::string(kMaxBeat, ' ')), std::nullopt) << "too long";
}

}  // namespace
}  // namespace muster::worker
