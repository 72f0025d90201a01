// Flight logs between a launcher and its workers: reads what workers write, and is safe with
// anything else.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/unique_fd.h"
#include "test/support/temp_dir.h"
#include "worker/flight_log.h"
#include "worker/flight_report.h"

namespace muster::worker {
namespace {

// Runs `body` as the worker with index `worker`, in a process that is then killed.
template <typename Body>
void AsWorker(const FlightFile& file, int worker, const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    const auto memory = FlightMemory::Open(file.path(), file.OffsetOf(worker));
    if (!memory.ok()) _exit(1);
    FlightLog log(memory->data());
    body(log);
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
}

TEST(FlightFileTest, WhatKilledWorkersWereInIsRead) {
  const FlightFile file = FlightFile::Create(3).value();
  AsWorker(file, 2, [](FlightLog& log) {
    log.Enter({"", FlightPart::kAll, "all-reduce", 812, "h.2.c_proj", 400, FlightNow()});
  });
  AsWorker(file, 0, [](FlightLog& log) {
    log.Leave(log.Enter({"", FlightPart::kAll, "all-reduce", 811, "wte", 8, 1}), FlightNow());
  });
  const std::vector<RankFlight> flights = file.Read(4);
  ASSERT_EQ(flights.size(), 3u);
  EXPECT_EQ(flights[1].rank, 5);
  EXPECT_TRUE(flights[1].records.empty());
  const std::string told = ExplainFlights(flights, FlightNow());
  EXPECT_EQ(told.find("rank 4 left all-reduce 811 (wte) "), 0u) << told;
  EXPECT_NE(told.find("; rank 6 waits in all-reduce 812 (h.2.c_proj) for "), std::string::npos);
}

// A wrapper started its program again, which hung in all-reduce 6: "rank 0 waits in all-reduce 31",
// where the earlier program had died.
TEST(FlightFileTest, AProgramThatIsStartedAgainBeginsAnEmptyLog) {
  const FlightFile file = FlightFile::Create(2).value();
  AsWorker(file, 1, [](FlightLog& log) {
    log.Enter({"", FlightPart::kAll, "all-reduce", 7, "beside", 8, FlightNow()});
  });
  AsWorker(file, 0, [](FlightLog& log) {
    log.Enter({"", FlightPart::kAll, "all-reduce", 31, "old", 8, FlightNow()});
  });
  AsWorker(file, 0, [](FlightLog& log) {
    log.Enter({"", FlightPart::kAll, "all-reduce", 6, "new", 8, FlightNow()});
  });
  const std::vector<RankFlight> flights = file.Read(0);
  ASSERT_EQ(flights[0].records.size(), 1u);
  EXPECT_EQ(flights[0].records[0].tensor, "new");
  ASSERT_EQ(flights[1].records.size(), 1u) << "it is another rank's";
}

// As the Python code in docs/observing/flight_log.py did.
TEST(FlightFileTest, TicketsOfAProgramThatCountsThemAnewEndTheOlderOnes) {
  const FlightFile file = FlightFile::Create(1).value();
  AsWorker(file, 0, [](FlightLog& log) {
    for (std::uint32_t i = 1; i <= 31; ++i) {
      log.Enter({"", FlightPart::kAll, "all-reduce", i, "old", 8, FlightNow()});
    }
  });
  const base::UniqueFd worker(open(file.path().c_str(), O_RDWR | O_CLOEXEC));
  const std::uint64_t last_ticket = 0;
  ASSERT_EQ(
      pwrite(worker.get(), &last_ticket, sizeof last_ticket, offsetof(FlightHeader, last_ticket)),
      static_cast<ssize_t>(sizeof last_ticket));
  void* const memory =
      mmap(nullptr, kFlightLogBytes, PROT_READ | PROT_WRITE, MAP_SHARED, worker.get(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  FlightLog(static_cast<std::byte*>(memory))
      .Enter({"", FlightPart::kAll, "all-reduce", 1, "new", 8, FlightNow()});
  munmap(memory, kFlightLogBytes);
  const std::vector<RankFlight> flights = file.Read(0);
  ASSERT_EQ(flights[0].records.size(), 1u);
  EXPECT_EQ(flights[0].records[0].tensor, "new");
}

TEST(FlightFileTest, WhoKeepsALogIsKnownBeforeTheFirstOperation) {
  const FlightFile file = FlightFile::Create(2).value();
  AsWorker(file, 1, [](FlightLog&) {});
  const std::vector<RankFlight> flights = file.Read(0);
  EXPECT_FALSE(flights[0].kept);
  EXPECT_TRUE(flights[1].kept);
  EXPECT_TRUE(flights[1].records.empty());
}

TEST(FlightFileTest, NobodyCanChangeItsSize) {
  const FlightFile file = FlightFile::Create(1).value();
  const base::UniqueFd worker(open(file.path().c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(worker.valid());
  EXPECT_NE(ftruncate(worker.get(), 0), 0);
  EXPECT_NE(ftruncate(worker.get(), off_t{1} << 40), 0);
}

TEST(FlightFileTest, ItIsGoneWithTheLauncher) {
  std::string path;
  {
    const FlightFile file = FlightFile::Create(1).value();
    path = file.path();
    EXPECT_TRUE(FlightMemory::Open(path, 0).ok());
  }
  EXPECT_FALSE(FlightMemory::Open(path, 0).ok());
}

class ForeignFileTest : public testing::Test {
 protected:
  // Opens the log for reading, as a launcher would.
  static std::vector<FlightRecord> ReadAt(const std::string& path, std::size_t offset = 0) {
    const base::UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    return ReadFlightLog(file.get(), offset).value_or(std::vector<FlightRecord>());
  }

  // A full log whose last operation is not finished.
  static std::string FullLog() {
    alignas(64) static std::byte memory[kFlightLogBytes];
    std::memset(memory, 0, sizeof memory);
    const FlightHeader header = NewFlightHeader();
    std::memcpy(memory, &header, sizeof header);
    FlightLog log(memory);
    for (std::uint32_t i = 1; i <= kFlightRecords + 5; ++i) {
      const auto ticket = log.Enter({"tp/0", FlightPart::kAll, "all-reduce", i, "h.2", 8, i});
      if (i <= kFlightRecords) log.Leave(ticket, i + 1);
    }
    return std::string(reinterpret_cast<const char*>(memory), sizeof memory);
  }

  const test::TempDir dir_;
};

TEST_F(ForeignFileTest, OnlyAFileWithALogHasOne) {
  const std::string log = FullLog();
  EXPECT_EQ(ReadAt(dir_.Write("log", log)).size(), kFlightRecords);
  EXPECT_TRUE(ReadAt(dir_.Path("missing")).empty());
  EXPECT_TRUE(ReadAt("/dev/zero").empty());
  EXPECT_TRUE(ReadAt(dir_.Write("empty", "")).empty());
  EXPECT_TRUE(ReadAt(dir_.Write("short", log.substr(0, log.size() - 1))).empty());
  EXPECT_TRUE(ReadAt(dir_.Path("log"), 1).empty());
  EXPECT_TRUE(ReadAt(dir_.Path("log"), ~std::size_t{0}).empty());
  ASSERT_EQ(mkdir(dir_.Path("directory").c_str(), 0700), 0);
  EXPECT_TRUE(ReadAt(dir_.Path("directory")).empty());
  ASSERT_EQ(mkfifo(dir_.Path("fifo").c_str(), 0600), 0);
  EXPECT_TRUE(ReadAt(dir_.Path("fifo")).empty());
  ASSERT_EQ(symlink("loop", dir_.Path("loop").c_str()), 0);
  EXPECT_TRUE(ReadAt(dir_.Path("loop")).empty());
}

TEST_F(ForeignFileTest, OfAnEnormousFileNoMoreIsReadThanALog) {
  const std::string path = dir_.Write("log", FullLog());
  ASSERT_EQ(truncate(path.c_str(), off_t{1} << 40), 0);
  EXPECT_EQ(ReadAt(path).size(), kFlightRecords);
  EXPECT_TRUE(ReadAt(path, std::size_t{1} << 39).empty());
}

// If the variables name another file by accident, such as a checkpoint, it stays unchanged.
TEST_F(ForeignFileTest, AWorkerWritesToNoOtherFile) {
  const std::string text(2 * kFlightLogBytes, 'x');
  const std::string path = dir_.Write("checkpoint", text);
  EXPECT_FALSE(FlightMemory::Open(path, 0).ok());
  EXPECT_FALSE(FlightMemory::Open(dir_.Write("short", "x"), 0).ok());
  EXPECT_FALSE(FlightMemory::Open(dir_.Path("missing"), 0).ok());
  EXPECT_FALSE(FlightMemory::Open("/dev/null", 0).ok());
  ASSERT_EQ(mkfifo(dir_.Path("fifo").c_str(), 0600), 0);
  EXPECT_FALSE(FlightMemory::Open(dir_.Path("fifo"), 0).ok());
  const std::string log = dir_.Write("log", FullLog());
  EXPECT_FALSE(FlightMemory::Open(log, kFlightLogBytes).ok());
  EXPECT_FALSE(FlightMemory::Open(log, ~std::size_t{0}).ok());
  EXPECT_TRUE(FlightMemory::Open(log, 0).ok());
  EXPECT_EQ(test::ReadAll(path), text);
}

// The seed is fixed, so that a failure repeats. Sanitizers detect undefined behaviour.
TEST_F(ForeignFileTest, RandomBytesBecomeAtWorstAWrongSentence) {
  const std::string log = FullLog();
  std::mt19937_64 random(20261123);
  const auto below = [&random](std::size_t end) { return random() % end; };
  const base::UniqueFd file(open(dir_.Path("log").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  std::size_t told = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string bytes = log;
    for (std::size_t change = below(40) + 1; change > 0; --change) {
      // Set whole words to extreme values, and anything else to random ones.
      const std::size_t at = below(bytes.size() / 8) * 8;
      const std::uint64_t word = below(3) == 0 ? std::uint64_t{1} << below(64) : random();
      const std::uint64_t written = below(4) == 0 ? ~std::uint64_t{0} : word;
      // Usually spare the magic, or nothing else is ever read.
      if (at >= 64 || below(20) == 0) std::memcpy(bytes.data() + at, &written, sizeof written);
    }
    if (below(50) == 0) bytes.resize(below(bytes.size()));
    ASSERT_EQ(ftruncate(file.get(), 0), 0);
    ASSERT_EQ(pwrite(file.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));

    const std::vector<FlightRecord> records =
        ReadFlightLog(file.get(), 0).value_or(std::vector<FlightRecord>());
    ASSERT_LE(records.size(), kFlightRecords);
    for (const std::int64_t now : {std::int64_t{0}, FlightNow()}) {
      const std::string text = ExplainFlights({{0, records}, {1, {}}}, now);
      told += text.empty() ? 0 : 1;
      ASSERT_LE(text.size(), 400u);
      ASSERT_TRUE(
          std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; }))
          << "iteration " << i;
      LongestStay({{0, records}}, now);
    }
  }
  EXPECT_GT(told, 100u) << "most of it never came as far as the sentence";
}

}  // namespace
}  // namespace muster::worker
