// The operation a rank is in, as reported by itself and as read by its launcher.
#include "trainer/comm/host/operation_log.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "trainer/comm/host/shm_segment.h"
#include "trainer/comm/host/transport.h"
#include "worker/flight_log.h"

namespace muster::trainer {
namespace {

class FlightRecorderTest : public testing::Test {
 protected:
#if defined(__SANITIZE_THREAD__)
  void SetUp() override {
    GTEST_SKIP() << "ThreadSanitizer of gcc 12 misses try_lock_for()";
  }
#endif
  // What the launcher reads of the one worker.
  std::vector<worker::FlightRecord> Launchers() const {
    return file_.Read(3)[0].records;
  }
  // False if that takes longer than any test should.
  bool LauncherSeesTheEnd() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (std::chrono::steady_clock::now() < end) {
      const auto records = Launchers();
      if (!records.empty() && records.back().left_ns != 0) return true;
      std::this_thread::yield();
    }
    return false;
  }

  const worker::FlightFile file_ = worker::FlightFile::Create(1).value();
  FlightRecorder recorder_{ShmSegment::Create(FlightRecorder::SegmentBytes(1)).value(),
                           LayOutHosts({"host"}, 0), 0,
                           worker::FlightMemory::Open(file_.path(), 0).value()};
  GroupFlights flights_{&recorder_, "tp/0"};
};

TEST_F(FlightRecorderTest, TheLauncherReadsWhatTheRankIsIn) {
  const int tensor = 0;
  recorder_.NameBuffers({{&tensor, "h.2.c_proj"}});
  const auto ticket = flights_.Enter(FlightPart::kAll, Operation::kReduceScatter, &tensor, 400);
  std::vector<worker::FlightRecord> records = Launchers();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].operation, "reduce-scatter");
  EXPECT_EQ(records[0].group, "tp/0");
  EXPECT_EQ(records[0].tensor, "h.2.c_proj");
  EXPECT_EQ(records[0].bytes, 400u);
  EXPECT_EQ(records[0].left_ns, 0);
  EXPECT_EQ(recorder_.Explain().find("rank 0 waits in reduce-scatter 1 of tp/0 (h.2.c_proj) for "),
            0u);
  flights_.Leave(ticket);
  EXPECT_NE(Launchers()[0].left_ns, 0);
  EXPECT_EQ(recorder_.Explain(), "");
}

TEST_F(FlightRecorderTest, WithoutSharedMemoryTheLauncherIsToldAlone) {
  const worker::FlightFile file = worker::FlightFile::Create(1).value();
  FlightRecorder alone(std::nullopt, LayOutHosts({"a", "b"}, 1), 1,
                       worker::FlightMemory::Open(file.path(), 0).value());
  GroupFlights(&alone, "").Enter(FlightPart::kAll, Operation::kBroadcast, nullptr, 8);
  EXPECT_EQ(file.Read(1)[0].records.size(), 1u);
  EXPECT_EQ(alone.Explain().find("rank 1 waits in broadcast 1 (8 bytes) for "), 0u);
}

// Work on a GPU, whose end nothing reports.
TEST_F(FlightRecorderTest, WhatIsWatchedHasBeenLeftOnceItIsDone) {
  std::atomic<FlightState> progress = FlightState::kUnderWay;
  const auto ticket = flights_.Enter(FlightPart::kAll, Operation::kAllReduce, nullptr, 8);
  flights_.Watch(ticket, [&progress] { return progress.load(); });
  EXPECT_NE(recorder_.Explain(), "");
  EXPECT_EQ(Launchers()[0].left_ns, 0);
  progress = FlightState::kDone;
  // Only the recorder's own thread polls.
  EXPECT_TRUE(LauncherSeesTheEnd());
  EXPECT_EQ(recorder_.Explain(), "");
}

TEST_F(FlightRecorderTest, WhoExplainsAsksFirst) {
  const auto ticket = flights_.Enter(FlightPart::kAll, Operation::kAllReduce, nullptr, 8);
  flights_.Watch(ticket, [] { return FlightState::kDone; });
  EXPECT_EQ(recorder_.Explain(), "");
}

TEST_F(FlightRecorderTest, WhatFailsIsNotLeftAndNotAskedAgain) {
  std::atomic<int> asked = 0;
  const auto failing = flights_.Enter(FlightPart::kAll, Operation::kAllReduce, nullptr, 8);
  flights_.Watch(failing, [&asked] {
    ++asked;
    return FlightState::kFailed;
  });
  const auto throwing = flights_.Enter(FlightPart::kAll, Operation::kAllReduce, nullptr, 8);
  flights_.Watch(throwing, [&asked]() -> FlightState {
    ++asked;
    throw std::runtime_error("the device is lost");
  });
  recorder_.Explain();
  EXPECT_NE(recorder_.Explain(), "");
  EXPECT_EQ(asked, 2);
}

TEST_F(FlightRecorderTest, WhatIsUnderWayDoesNotKeepARecorderFromEnding) {
  const auto ticket = flights_.Enter(FlightPart::kAll, Operation::kAllReduce, nullptr, 8);
  flights_.Watch(ticket, [] { return FlightState::kUnderWay; });
}

}  // namespace
}  // namespace muster::trainer
