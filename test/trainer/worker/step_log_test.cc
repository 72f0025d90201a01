#include "trainer/worker/step_log.h"

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

class StepLogTest : public testing::Test {
 protected:
  std::string Content() const {
    std::ifstream file(path_);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  }
  void Write(const std::string& content) const { std::ofstream{path_} << content; }

  const std::string path_ = testing::TempDir() + "/log";
};

TEST_F(StepLogTest, ANewRunBeginsWithAnEmptyFile) {
  Write("1 0.9\n2 0.8\n");
  auto log = StepLog::Open(path_, 0);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ(Content(), "");
  (*log)->Append("1 0.7");
  (*log)->Append("2 0.6");
  EXPECT_TRUE((*log)->Flush().ok());
  EXPECT_EQ(Content(), "1 0.7\n2 0.6\n");
}

// A killed run has written lines for steps that the resumed run repeats; its last line may be
// incomplete.
TEST_F(StepLogTest, AResumedRunGoesOnBehindItsCheckpoint) {
  Write("9 0.9\n10 0.8\n11 0.7\n12 0");
  auto log = StepLog::Open(path_, 10);
  ASSERT_TRUE(log.ok()) << log.status();
  (*log)->Append("11 0.7");
  EXPECT_TRUE((*log)->Flush().ok());
  EXPECT_EQ(Content(), "9 0.9\n10 0.8\n11 0.7\n");
}

TEST_F(StepLogTest, HalfALineOfAStepThatIsKeptGoesAsWell) {
  Write("9 0.9\n10 0.8");
  auto log = StepLog::Open(path_, 10);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ(Content(), "9 0.9\n");
}

TEST_F(StepLogTest, ResumingWithoutTheOldFileBeginsANewOne) {
  std::remove(path_.c_str());
  auto log = StepLog::Open(path_, 10);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ(Content(), "");
}

TEST_F(StepLogTest, KnowsWhatItHasOfTheStepThatWasResumed) {
  Write(
      "{\"step\":9,\"time\":1,\"test/loss\":3}\n"
      "{\"step\":10,\"time\":2,\"test/loss\":3,\"test/right\":1}\n");
  auto log = StepLog::Open(path_, 10);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_TRUE((*log)->Kept({10, 5, {{"test/loss", 4}}}));
  EXPECT_TRUE((*log)->Kept({10, 5, {{"test/right", 1}, {"test/loss", 4}}}));
  EXPECT_FALSE((*log)->Kept({10, 5, {{"test/loss", 4}, {"right", 1}}}));
  EXPECT_FALSE((*log)->Kept({9, 5, {{"test/loss", 3}}}));
  EXPECT_FALSE((*log)->Kept({11, 5, {{"test/loss", 3}}}));
}

TEST_F(StepLogTest, AFullDiskIsToldAndNotForgotten) {
  auto log = StepLog::Open("/dev/full", 0);
  ASSERT_TRUE(log.ok()) << log.status();
  (*log)->Append("1 0.5");
  EXPECT_EQ((*log)->Flush().message(), "write /dev/full: No space left on device");
  EXPECT_FALSE((*log)->Flush().ok());
}

TEST_F(StepLogTest, SaysWhyTheFileCannotBeOpened) {
  EXPECT_EQ(StepLog::Open("/no/such/dir/log", 0).status().message(),
            "write /no/such/dir/log: No such file or directory");
}

TEST(StepOfLineTest, IsTheFirstNumberOfEitherForm) {
  EXPECT_EQ(StepOfLine("12 0.51"), 12);
  EXPECT_EQ(StepOfLine("{\"step\":7,\"time\":1}"), 7);
  EXPECT_EQ(StepOfLine(""), std::nullopt);
  EXPECT_EQ(StepOfLine("loss 3"), std::nullopt);
  EXPECT_EQ(StepOfLine("99999999999999999999 1"), std::nullopt);
}

TEST(JsonLineTest, HoldsTheValuesInOrder) {
  EXPECT_EQ(JsonLine({.step = 3,
                      .unix_seconds = 1700000000.25,
                      .values = {{"train/loss", 0.5}, {"epoch", 1}}}),
            "{\"step\":3,\"time\":1700000000.250,\"train/loss\":0.5,\"epoch\":1}");
}

TEST(JsonLineTest, ALossThatBlewUpIsStillJson) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(JsonLine({.step = 3, .unix_seconds = 0, .values = {{"loss", nan}, {"x", HUGE_VAL}}}),
            "{\"step\":3,\"time\":0.000,\"loss\":null,\"x\":null}");
}

}  // namespace
}  // namespace muster::trainer
