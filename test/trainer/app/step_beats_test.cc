// A step's report follows from its phases: their own time, and the total waiting time.
#include "trainer/worker/timing.h"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/socket_dir.h"
#include "test/trainer/beat_listener.h"

namespace muster::trainer {
namespace {

using std::chrono::milliseconds;
using Texts = std::vector<std::string>;

class StepBeatsTest : public testing::Test {
 protected:
  void Enter(Phase phase, int at_ms, int waited_ms = 0) {
    clock_.Enter(phase, start_ + milliseconds(at_ms), milliseconds(waited_ms));
  }

  const PhaseClock::Clock::time_point start_{};
  test::SocketDir dir_;
  const std::string path_ = dir_.Path("beats");
  BeatListener listener_{path_};
  BeatSender sender_{path_, 1};
  PhaseClock clock_{start_};
};

TEST_F(StepBeatsTest, WaitingIsAPartOfItsOwnInWhicheverPhaseItWas) {
  Enter(Phase::kData, 900, 500);  // before the first step
  Enter(Phase::kOther, 1000, 500);
  StepBeats beats(sender_, clock_, true, start_ + milliseconds(1000));
  Enter(Phase::kData, 1000, 500);
  Enter(Phase::kForward, 1010, 500);
  Enter(Phase::kBackward, 1030, 505);
  Enter(Phase::kOptimizer, 1100, 545);
  Enter(Phase::kOther, 1104, 545);
  beats.OnStep(7, 32, start_ + milliseconds(1128));
  // The ranks agree, and the next step begins.
  beats.OnLoss(2.5);
  Enter(Phase::kData, 1134, 565);
  Enter(Phase::kForward, 1135, 565);
  Enter(Phase::kBackward, 1140, 565);
  Enter(Phase::kOptimizer, 1150, 565);
  Enter(Phase::kOther, 1151, 565);
  beats.OnStep(8, 32, start_ + milliseconds(1160));
  EXPECT_EQ(listener_.Receive(),
            (Texts{"beat 1 7 samples_per_second=250 data=0.010000 forward=0.015000 "
                   "backward=0.030000 optimizer=0.004000 other=0.000000 wait=0.045000",
                   "beat 1 8 loss=2.5 samples_per_second=1000 data=0.001000 forward=0.005000 "
                   "backward=0.010000 optimizer=0.001000 other=0.010000 wait=0.020000"}));
}

// A pipeline alternates forward and backward.
TEST_F(StepBeatsTest, WhereForwardAndBackwardAreNotToldApartTheyAreOnePart) {
  StepBeats beats(sender_, clock_, true, start_);
  Enter(Phase::kData, 0);
  Enter(Phase::kForward, 10);
  Enter(Phase::kOptimizer, 60, 20);
  Enter(Phase::kOther, 64, 20);
  beats.OnStep(1, 16, start_ + milliseconds(64));
  EXPECT_EQ(listener_.Receive(),
            (Texts{"beat 1 1 samples_per_second=250 data=0.010000 compute=0.030000 "
                   "optimizer=0.004000 other=0.000000 wait=0.020000"}));
}

// The thread has queued work on a GPU, and waits for it and for other ranks at the same time.
TEST_F(StepBeatsTest, OnAGpuOnlyTheDataIsThisRanksOwn) {
  StepBeats beats(sender_, clock_, false, start_);
  Enter(Phase::kData, 0);
  Enter(Phase::kForward, 10);
  Enter(Phase::kOther, 12);
  beats.OnStep(1, 16, start_ + milliseconds(64));
  EXPECT_EQ(listener_.Receive(),
            (Texts{"beat 1 1 samples_per_second=250 data=0.010000 wait_step=0.054000"}));
}

}  // namespace
}  // namespace muster::trainer
