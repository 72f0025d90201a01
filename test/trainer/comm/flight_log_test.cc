#include "trainer/comm/flight_log.h"

#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "test/trainer/comm/forked_members.h"
#include "trainer/comm/shm_segment.h"

namespace muster::trainer {
namespace {

constexpr auto kAll = FlightPart::kAll;
constexpr auto kHost = FlightPart::kHost;
constexpr auto kReduce = Operation::kAllReduce;

class FlightLogTest : public testing::Test {
 protected:
  const ShmSegment memory_ = ShmSegment::Create(FlightLog::Bytes()).value();
  FlightLog log_{memory_.data()};
};

TEST_F(FlightLogTest, KeepsWhatIsEntered) {
  EXPECT_TRUE(log_.Read().empty());
  const auto first = log_.Enter({"", kAll, kReduce, 1, "a", 8, 10});
  log_.Leave(first, 11);
  log_.Enter({"tp/0", kHost, kReduce, 1, "", 16, 12});
  log_.Enter({"", kAll, Operation::kBroadcast, 2, "b", 24, 13});
  EXPECT_EQ(log_.Read(), (std::vector<FlightRecord>{
                             {"", kAll, kReduce, 1, "a", 8, 10, 11},
                             {"tp/0", kHost, kReduce, 1, "", 16, 12, 0},
                             {"", kAll, Operation::kBroadcast, 2, "b", 24, 13, 0},
                         }));
}

TEST_F(FlightLogTest, KeepsTheLatestAndCutsNames) {
  const auto lost = log_.Enter({"", kAll, kReduce, 1, "lost", 0, 1});
  const std::string name(FlightLog::kNameBytes + 10, 'n');
  for (std::uint32_t i = 0; i < FlightLog::kRecords; ++i) {
    log_.Enter({name, kAll, kReduce, 2 + i, name, 0, 2});
  }
  log_.Leave(lost, 3);  // its place is another one's by now
  const std::vector<FlightRecord> records = log_.Read();
  ASSERT_EQ(records.size(), FlightLog::kRecords);
  EXPECT_EQ(records.front().number, 2u);
  EXPECT_EQ(records.front().left_ns, 0);
  EXPECT_EQ(records.back().number, FlightLog::kRecords + 1);
  EXPECT_EQ(records.back().tensor, name.substr(0, FlightLog::kNameBytes));
  EXPECT_EQ(records.back().group, name.substr(0, FlightLog::kGroupBytes));
}

TEST_F(FlightLogTest, WhatADeadRankWasInCanBeRead) {
  ForkedMembers rank(1, [this](int, const ForkedMembers::Say& say) {
    FlightLog log(memory_.data());
    log.Leave(log.Enter({"", kAll, Operation::kAllGather, 1, "done", 1, 1}), 2);
    log.Enter({"", kAll, kReduce, 1, "never", 1, 3});
    say("there");
    for (;;) pause();
    return 0;
  });
  ASSERT_TRUE(rank.WaitFor(0, "there"));
  rank.Signal(0, SIGKILL);
  EXPECT_EQ(rank.Wait(0), -SIGKILL);
  const std::vector<FlightRecord> records = log_.Read();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].tensor, "never");
  EXPECT_EQ(records[1].left_ns, 0);
}

TEST_F(FlightLogTest, NobodyReadsHalfARecord) {
  std::vector<std::thread> writers;
  for (const FlightPart part : {kAll, kHost}) {
    writers.emplace_back([this, part] {
      for (std::uint32_t i = 1; i <= 20'000; ++i) {
        const std::string name(i % 60, 'a');
        log_.Leave(log_.Enter({name, part, kReduce, i, name, name.size(), 1}), 2);
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    for (const FlightRecord& record : log_.Read()) {
      EXPECT_EQ(record.tensor, std::string(record.bytes, 'a'));
      EXPECT_EQ(record.group, record.tensor.substr(0, FlightLog::kGroupBytes));
      EXPECT_EQ(record.number % 60, record.bytes);
    }
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(log_.Read().size(), FlightLog::kRecords);
}

}  // namespace
}  // namespace muster::trainer
