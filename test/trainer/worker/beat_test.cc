// Beats to a socket with a listener and to one without: the training must not notice.
#include "trainer/worker/launcher_link.h"

#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/socket_dir.h"
#include "test/trainer/beat_listener.h"

namespace muster::trainer {
namespace {

class BeatSenderTest : public testing::Test {
 protected:
  test::SocketDir dir_;
  const std::string path_ = dir_.Path("beats");
};

TEST_F(BeatSenderTest, SaysRankAndStep) {
  BeatListener listener(path_);
  BeatSender sender(path_, 3);
  sender.Send(0);
  sender.Send(1200);
  EXPECT_EQ(listener.Receive(), (std::vector<std::string>{"beat 3 0", "beat 3 1200"}));
}

TEST_F(BeatSenderTest, SaysWhatTheStepWasLike) {
  BeatListener listener(path_);
  BeatSender sender(path_, 3);
  EXPECT_TRUE(sender.sends());
  EXPECT_FALSE(BeatSender("", 3).sends());
  sender.Send(
      7,
      {.loss = 2.25, .samples_per_second = 512, .parts = {{"data", 0.0125}, {"wait", 0.0000004}}});
  sender.Send(8, {.loss = std::nan("")});
  EXPECT_EQ(listener.Receive(),
            (std::vector<std::string>{
                "beat 3 7 loss=2.25 samples_per_second=512 data=0.012500 wait=0.000000",
                "beat 3 8 loss=nan"}));
}

TEST_F(BeatSenderTest, AFullSocketLosesBeatsAndNeverMakesTheTrainingWait) {
  BeatListener listener(path_);
  BeatSender sender(path_, 0);
  // Nothing reads meanwhile: a sender that blocked would block forever.
  constexpr std::size_t kMany = 100'000;
  for (std::size_t step = 0; step < kMany; ++step) sender.Send(static_cast<std::int64_t>(step));
  EXPECT_LT(listener.Receive().size(), kMany);
  sender.Send(7);
  EXPECT_EQ(listener.Receive(), (std::vector<std::string>{"beat 0 7"})) << "there is room again";
}

TEST_F(BeatSenderTest, AListenerThatComesBackIsHeardOf) {
  BeatSender sender(path_, 0);
  sender.Send(1);
  { const BeatListener gone(path_); }
  sender.Send(2);
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  BeatListener listener(path_);
  sender.Send(3);
  EXPECT_EQ(listener.Receive(), (std::vector<std::string>{"beat 0 3"}));
}

TEST_F(BeatSenderTest, WithoutASocketNothingHappens) {
  const int lowest = ::open("/dev/null", O_RDONLY);
  ::close(lowest);
  BeatSender unset("", 0);
  BeatSender too_long(std::string(200, 'x'), 0);
  unset.Send(1);
  too_long.Send(1);
  const int still_lowest = ::open("/dev/null", O_RDONLY);
  ::close(still_lowest);
  EXPECT_EQ(still_lowest, lowest) << "no descriptor is held";
}

}  // namespace
}  // namespace muster::trainer
