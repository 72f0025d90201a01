#include "worker/output/stream_log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <limits>
#include <string>

#include <unistd.h>

#include "test/support/temp_dir.h"

namespace muster::worker {
namespace {

using std::chrono::seconds;

StreamLog::Time At(int s) {
  return StreamLog::Time(seconds(1000 + s));
}

class StreamLogTest : public ::testing::Test {
 protected:
  // As LogWriter and Output do.
  static void Write(const std::string& path, StreamLog& log, const std::string& bytes, int at) {
    std::ofstream(path, std::ios::app) << bytes;
    log.Append(bytes, bytes.size(), At(at));
  }
  static std::string From(const StreamLog& log, std::uint64_t offset) {
    return log.Read(offset, 1 << 20).value_or("unreadable");
  }

  const test::TempDir temp_;
  const std::string path_ = temp_.path() + "/stdout.log";
};

TEST_F(StreamLogTest, FileIsThereAsAWhole) {
  StreamLog log(path_);
  Write(path_, log, "one\ntwo\n", 0);
  Write(path_, log, "three\n", 10);
  EXPECT_EQ(log.begin(), 0u);
  EXPECT_EQ(log.end(), 14u);
  EXPECT_EQ(log.Read(0, 5).value(), "one\nt");
  EXPECT_EQ(From(log, log.FindTime(At(5))), "three\n");
  EXPECT_EQ(log.FindTime(At(20)), log.end());
  EXPECT_EQ(From(log, log.FindTail(2)), "two\nthree\n");
  EXPECT_EQ(From(log, log.FindTail(100)), "one\ntwo\nthree\n");
  EXPECT_EQ(log.FindTail(0), log.end());
  // "muster logs --tail=2147483647 prints nothing."
  EXPECT_EQ(log.FindTail(std::numeric_limits<int>::max()), log.begin());
}

TEST_F(StreamLogTest, WithoutAFileTheLastBytesAreThere) {
  StreamLog log("");
  std::string all;
  for (int i = 0; all.size() < 5 * StreamLog::kKept; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    log.Append(line, line.size(), At(i));
    all += line;
  }
  EXPECT_EQ(log.end(), all.size());
  EXPECT_GE(log.end() - log.begin(), StreamLog::kKept);
  EXPECT_LE(log.end() - log.begin(), 2 * StreamLog::kKept);
  EXPECT_EQ(From(log, log.begin()), all.substr(log.begin()));
  log.Append(std::string(10 * StreamLog::kKept, 'x'), 10 * StreamLog::kKept, At(0));
  EXPECT_LE(log.end() - log.begin(), 2 * StreamLog::kKept);
  log.Forget();
  EXPECT_EQ(log.begin(), log.end());
}

TEST_F(StreamLogTest, UnfinishedLineCountsAsTheLast) {
  StreamLog log("");
  log.Append("one\ntwo", 7, At(0));
  EXPECT_EQ(From(log, log.FindTail(1)), "two");
  log.Append(" and a half\n", 12, At(10));
  EXPECT_EQ(From(log, log.FindTime(At(5))), "two and a half\n") << "the line as a whole";
}

// The disk was full, so the file has less than the worker wrote.
TEST_F(StreamLogTest, WhatTheFileHasNotTakenIsNotCounted) {
  StreamLog log(path_);
  std::ofstream(path_) << "on";
  log.Append("one\n", 2, At(0));
  EXPECT_EQ(log.end(), 2u);
  EXPECT_EQ(From(log, 0), "on");
}

TEST_F(StreamLogTest, FileThatIsGoneOrALinkIsNotRead) {
  StreamLog log(path_);
  Write(path_, log, "one\n", 0);
  std::ofstream(temp_.path() + "/secret") << "secret\n";
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  EXPECT_EQ(log.Read(0, 4).status().message(),
            "read log file " + path_ + ": No such file or directory");
  ASSERT_EQ(::symlink("secret", path_.c_str()), 0);
  EXPECT_FALSE(log.Read(0, 4).ok());
}

TEST_F(StreamLogTest, WhoWatchesIsToldOfMoreAndOfTheEnd) {
  StreamLog log("");
  int news = 0;
  StreamLog::Watch watch = log.WatchNews([&news] { ++news; });
  log.Append("a", 1, At(0));
  log.Append("b", 1, At(0));
  EXPECT_EQ(news, 2);
  log.End();
  log.End();
  EXPECT_EQ(news, 3);
  EXPECT_TRUE(log.ended());
  watch.reset();
  log.Append("c", 1, At(0));
  EXPECT_EQ(news, 3);
}

}  // namespace
}  // namespace muster::worker
