#include "trainer/runtime/trace_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/trainer/diary_device.h"

namespace muster::trainer {
namespace {

using testing::ElementsAre;

// A GPU profile would have shown only how long it takes to queue work.
TEST(PhaseTrackerTest, APhaseEndsWhenTheDeviceIsDoneWithIt) {
  ReadDiary();  // of other tests
  PhaseTracker phases;
  phases.Enter(Phase::kForward);
  EXPECT_THAT(ReadDiary(), ElementsAre());
  phases.WaitFor(DiaryDevice());
  phases.Enter(Phase::kBackward);
  EXPECT_THAT(ReadDiary(), ElementsAre("wait for stream 0"));
  phases.WaitFor(at::kCPU);
  phases.Enter(Phase::kOther);
  EXPECT_THAT(ReadDiary(), ElementsAre());
}

}  // namespace
}  // namespace muster::trainer
