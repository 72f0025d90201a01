// Event files, read back byte for byte by a reader that shares only the checksum with the writer;
// the checksum has its own test.
#include "trainer/worker/step_log.h"

#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

template <typename Number>
Number Take(std::string& bytes) {
  Number number{};
  EXPECT_GE(bytes.size(), sizeof number);
  std::memcpy(&number, bytes.data(), sizeof number);
  bytes.erase(0, sizeof number);
  return number;
}

// The records of the file at `path`, whose checksums must be right.
std::vector<std::string> Records(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> records;
  while (!bytes.empty()) {
    const std::string length_bytes = bytes.substr(0, 8);
    const auto length = Take<std::uint64_t>(bytes);
    EXPECT_EQ(Take<std::uint32_t>(bytes), MaskedCrc32c(length_bytes));
    records.push_back(bytes.substr(0, length));
    bytes.erase(0, length);
    EXPECT_EQ(Take<std::uint32_t>(bytes), MaskedCrc32c(records.back()));
  }
  return records;
}

std::string Dir(const std::string& name) {
  const std::string dir = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(dir);
  return dir;
}

// Each expected message is written out as its bytes, as `protoc --encode` gives them.
TEST(TensorBoardTest, ARunIsAVersionAndItsScalars) {
  const std::string dir = Dir("run/deeper");
  const auto writer = TensorBoardWriter::Create(dir, 2.0, /*resumed_step=*/0);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Write({.step = 300, .unix_seconds = 2.0, .values = {{"a", 1.0}}}).ok());
  ASSERT_TRUE((*writer)->Write({.step = 301, .unix_seconds = 2.0, .values = {}}).ok());

  const std::string two_seconds("\x09\x00\x00\x00\x00\x00\x00\x00\x40", 9);
  const std::vector<std::string> records = Records((*writer)->path());
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0], two_seconds + std::string("\x10\x00", 2) + "\x1a\x0d" + "brain.Event:2");
  EXPECT_EQ(records[1], two_seconds + "\x10\xac\x02" + "\x2a\x0a" + "\x0a\x08" + "\x0a\x01" + "a" +
                            std::string("\x15\x00\x00\x80\x3f", 5));
  EXPECT_EQ(records[2], two_seconds + "\x10\xad\x02" + std::string("\x2a\x00", 2));
}

TEST(TensorBoardTest, AResumedRunMarksWhereItGoesOn) {
  const auto writer = TensorBoardWriter::Create(Dir("resumed"), 2.0, /*resumed_step=*/40);
  ASSERT_TRUE(writer.ok()) << writer.status();
  const std::vector<std::string> records = Records((*writer)->path());
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].substr(9), "\x10\x29\x3a\x02\x08\x01") << "step 41, session START";
}

TEST(TensorBoardTest, TheFileHasANameThatTensorBoardLooksFor) {
  const auto writer = TensorBoardWriter::Create(Dir("named"), 1700000000.0, 0);
  ASSERT_TRUE(writer.ok()) << writer.status();
  const std::string name = std::filesystem::path((*writer)->path()).filename();
  EXPECT_EQ(name.rfind("events.out.tfevents.1700000000.", 0), 0u) << name;
}

TEST(TensorBoardTest, SaysWhyTheDirectoryCannotBeMade) {
  const std::string file = testing::TempDir() + "/a-file";
  std::ofstream{file} << "x";
  const auto writer = TensorBoardWriter::Create(file + "/dir", 0, 0);
  EXPECT_EQ(writer.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(writer.status().message().find("a-file/dir: Not a directory"), absl::string_view::npos)
      << writer.status();
}

}  // namespace
}  // namespace muster::trainer
