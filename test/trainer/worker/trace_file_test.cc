#include "trainer/worker/timing.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace muster::trainer {
namespace {

class TraceFileTest : public testing::Test {
 protected:
  TraceFileTest() {
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
  }

  nlohmann::json Parse(const std::string& path) const {
    std::ifstream file(path);
    return nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  }

  const std::string dir_ = testing::TempDir() + "/trace";
  const std::string path_ = dir_ + "/trace.json";
};

TEST_F(TraceFileTest, RanksAreOneFileInTheEnd) {
  for (int rank = 0; rank < 2; ++rank) {
    TraceBuffer buffer(10);
    buffer.Add({.name = "a \"quoted\" op",
                .thread = 7,
                .start_ns = 1'700'000'000'123'456'789,
                .duration_ns = 1'042});
    ASSERT_TRUE(buffer.Write(TracePart(path_, rank), rank).ok());
  }
  const auto found = MergeTraceParts(path_, 2);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, 2);

  const nlohmann::json trace = Parse(path_);
  ASSERT_TRUE(trace.is_array());
  ASSERT_EQ(trace.size(), 4u) << "a name and an event of each rank";
  EXPECT_EQ(trace[0]["args"]["name"], "rank 0");
  EXPECT_EQ(trace[3]["ph"], "X");
  EXPECT_EQ(trace[3]["pid"], 1);
  EXPECT_EQ(trace[3]["tid"], 7);
  EXPECT_EQ(trace[3]["name"], "a ?quoted? op");
  EXPECT_DOUBLE_EQ(trace[3]["ts"], 1'700'000'000'123'456.789);
  EXPECT_DOUBLE_EQ(trace[3]["dur"], 1.042);
  EXPECT_FALSE(std::filesystem::exists(TracePart(path_, 0)));
  EXPECT_FALSE(std::filesystem::exists(TracePart(path_, 1)));
}

TEST_F(TraceFileTest, ARankOnAnotherHostStaysOut) {
  ASSERT_TRUE(TraceBuffer(10).Write(TracePart(path_, 2), 2).ok());
  const auto found = MergeTraceParts(path_, 3);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, 1);
  EXPECT_EQ(Parse(path_).size(), 1u);
}

TEST_F(TraceFileTest, ALongRunKeepsItsBeginning) {
  TraceBuffer buffer(2);
  for (const char* name : {"first", "second", "third"}) buffer.Add({.name = name});
  EXPECT_EQ(buffer.size(), 2u);
  EXPECT_EQ(buffer.dropped(), 1u);
  ASSERT_TRUE(buffer.Write(TracePart(path_, 0), 0).ok());
  ASSERT_TRUE(MergeTraceParts(path_, 1).ok());
  EXPECT_EQ(Parse(path_).back()["name"], "second");
}

TEST_F(TraceFileTest, SaysWhyItCannotBeWritten) {
  EXPECT_EQ(TraceBuffer(1).Write("/no/such/dir/t", 0).message(),
            "write /no/such/dir/t: No such file or directory");
  EXPECT_EQ(TraceBuffer(1).Write("/dev/full", 0).message(),
            "write /dev/full: No space left on device");
  EXPECT_FALSE(MergeTraceParts("/no/such/dir/t", 1).ok());
}

}  // namespace
}  // namespace muster::trainer
