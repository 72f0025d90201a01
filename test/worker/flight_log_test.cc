#include "worker/flight_log.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace muster::worker {
namespace {

constexpr auto kAll = FlightPart::kAll;
constexpr auto kHost = FlightPart::kHost;
constexpr char kReduce[] = "all-reduce";
constexpr std::size_t kNameBytes = sizeof(FlightSlot::tensor);
constexpr std::size_t kGroupBytes = sizeof(FlightSlot::group);

class FlightLogTest : public testing::Test {
 protected:
  ~FlightLogTest() override { munmap(memory_, kFlightLogBytes); }

  // Shared with child processes.
  std::byte* const memory_ = static_cast<std::byte*>(
      mmap(nullptr, kFlightLogBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  FlightLog log_{memory_};
};

TEST_F(FlightLogTest, KeepsWhatIsEntered) {
  EXPECT_TRUE(log_.Read().empty());
  const auto first = log_.Enter({"", kAll, kReduce, 1, "a", 8, 10});
  log_.Leave(first, 11);
  log_.Enter({"tp/0", kHost, kReduce, 1, "", 16, 12});
  log_.Enter({"", kAll, "broadcast", 2, "b", 24, 13});
  EXPECT_EQ(log_.Read(), (std::vector<FlightRecord>{
                             {"", kAll, kReduce, 1, "a", 8, 10, 11},
                             {"tp/0", kHost, kReduce, 1, "", 16, 12, 0},
                             {"", kAll, "broadcast", 2, "b", 24, 13, 0},
                         }));
}

TEST_F(FlightLogTest, KeepsTheLatestAndCutsNames) {
  const auto lost = log_.Enter({"", kAll, kReduce, 1, "lost", 0, 1});
  const std::string name(kNameBytes + 10, 'n');
  for (std::uint32_t i = 0; i < kFlightRecords; ++i) {
    log_.Enter({name, kAll, kReduce, 2 + i, name, 0, 2});
  }
  log_.Leave(lost, 3);  // its slot was reused by now
  const std::vector<FlightRecord> records = log_.Read();
  ASSERT_EQ(records.size(), kFlightRecords);
  EXPECT_EQ(records.front().number, 2u);
  EXPECT_EQ(records.front().left_ns, 0);
  EXPECT_EQ(records.back().number, kFlightRecords + 1);
  EXPECT_EQ(records.back().tensor, name.substr(0, kNameBytes));
  EXPECT_EQ(records.back().group, name.substr(0, kGroupBytes));
}

TEST_F(FlightLogTest, WhatADeadRankWasInCanBeRead) {
  const pid_t rank = fork();
  if (rank == 0) {
    FlightLog log(memory_);
    log.Leave(log.Enter({"", kAll, "all-gather", 1, "done", 1, 1}), 2);
    log.Enter({"", kAll, kReduce, 1, "never", 1, 3});
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(rank, &status, 0), rank);
  ASSERT_TRUE(WIFSIGNALED(status));
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
      EXPECT_EQ(record.group, record.tensor.substr(0, kGroupBytes));
      EXPECT_EQ(record.number % 60, record.bytes);
    }
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(log_.Read().size(), kFlightRecords);
}

TEST_F(FlightLogTest, ALogSaysWhichLayoutItHas) {
  FlightHeader header = NewFlightHeader();
  EXPECT_TRUE(IsKnown(header));
  header.version = 2;
  EXPECT_FALSE(IsKnown(header));
  EXPECT_FALSE(IsKnown(FlightHeader{}));
}

}  // namespace
}  // namespace muster::worker
