// Valid and invalid beats.
#include "worker/hang/hang_watch.h"

#include <cmath>
#include <optional>
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
  for (const char* text : {"",
                           "\n",
                           "beat",
                           "beat ",
                           "BEAT 3",
                           "beats 3",
                           "beat three",
                           "beat -1",
                           "beat +1",
                           "beat 3.5",
                           "beat 3 -1",
                           "beat 3 x",
                           "beat 3 x loss=1",
                           "beat 3\nbeat 4",
                           "beat 4294967296",
                           "beat loss=1",
                           "beat =",
                           "beat 3 9223372036854775808",
                           "3 7",
                           " "}) {
    EXPECT_EQ(ParseBeat(text), std::nullopt) << '"' << text << '"';
  }
  EXPECT_EQ(ParseBeat(std::string_view("beat 3\0", 7)), std::nullopt);
  EXPECT_EQ(ParseBeat("beat 3" + std::string(kMaxBeat, ' ')), std::nullopt) << "too long";
}

TEST(BeatTest, WhatTheStepWasLike) {
  EXPECT_EQ(ParseBeat("beat 3 1200 loss=2.31 samples_per_second=512 data=0.012 forward=3e-2 "
                      "wait_gradients=0\n"),
            (Beat{.rank = 3,
                  .step = 1200,
                  .loss = 2.31,
                  .samples_per_second = 512,
                  .phases = {{"data", 0.012}, {"forward", 0.03}, {"wait_gradients", 0}}}));
  EXPECT_EQ(ParseBeat("beat 3 loss=-1"), (Beat{.rank = 3, .loss = -1}));
}

TEST(BeatTest, LossThatIsNoNumberIsWorthKnowing) {
  EXPECT_TRUE(std::isnan(ParseBeat("beat 3 7 loss=nan").value().loss.value()));
  EXPECT_EQ(ParseBeat("beat 3 7 loss=-inf")->loss, -HUGE_VAL);
}

// A beat is a sign of life whatever else it says.
TEST(BeatTest, WordThatCannotBeReadIsIgnoredAndNamed) {
  for (const char* word : {"9",
                           "x",
                           "=",
                           "loss",
                           "loss=",
                           "loss=2,31",
                           "loss=1\t",
                           "samples_per_second=-1",
                           "samples_per_second=nan",
                           "samples_per_second=inf",
                           "data=-0.1",
                           "data=nan",
                           "data=inf",
                           "data=1000001",
                           "Data=1",
                           "data-x=1",
                           "_data=1",
                           "1data=1",
                           "d\xc3\xa4ta=1",
                           "sixteen_bytes_xx=1",
                           "=1",
                           "data=0x",
                           "data==1",
                           "\x1b[2J=1"}) {
    const std::optional<Beat> beat = ParseBeat(std::string("beat 3 7 ") + word + " forward=0.5");
    ASSERT_TRUE(beat.has_value()) << word;
    EXPECT_EQ(*beat, (Beat{.rank = 3, .step = 7, .phases = {{"forward", 0.5}}, .ignored = word}));
  }
}

TEST(BeatTest, PhaseIsToldOnceAndThereAreEight) {
  const std::optional<Beat> beat =
      ParseBeat("beat 3 7 a=1 a=2 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1 loss=4");
  ASSERT_TRUE(beat.has_value());
  EXPECT_EQ(beat->phases.size(), kMaxPhases);
  EXPECT_EQ(beat->phases[0], (BeatPhase{"a", 1}));
  EXPECT_EQ(beat->phases[7], (BeatPhase{"h", 1}));
  EXPECT_EQ(beat->ignored, "a=2");
  EXPECT_EQ(beat->loss, 4);
}

TEST(BeatTest, WaitingIsWhatIsCalledSo) {
  EXPECT_TRUE(IsWaitPhase("wait"));
  EXPECT_TRUE(IsWaitPhase("wait_gradients"));
  EXPECT_FALSE(IsWaitPhase("await"));
  EXPECT_FALSE(IsWaitPhase("forward"));
}

}  // namespace
}  // namespace muster::worker
