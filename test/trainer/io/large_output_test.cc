#include "trainer/io/formats/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace muster::trainer {
namespace {

constexpr std::size_t kPiece = std::size_t{4} << 20;

// Varying bytes, so that a misplaced one is noticed.
std::string Some(std::size_t count) {
  std::string bytes(count, '\0');
  std::uint32_t state = 1;
  for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

// Writes `bytes` in parts of `part` and returns the resulting content of the file at `path`.
std::string Written(const std::string& path, const std::string& bytes, std::size_t part) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  LargeOutput output(fd);
  for (std::size_t at = 0; at < bytes.size(); at += part) {
    EXPECT_TRUE(output.Append(std::string_view(bytes).substr(at, part)));
  }
  EXPECT_TRUE(output.Finish());
  EXPECT_EQ(fcntl(fd, F_GETFL) & O_DIRECT, 0);
  close(fd);
  return test::ReadAll(path);
}

TEST(LargeOutputTest, FilesOfEverySizeAreWhole) {
  const test::TempDir dir;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, kPiece - 1, kPiece, kPiece + 1, 3 * kPiece + 4097}) {
    const std::string bytes = Some(size);
    for (const std::size_t part :
         {std::size_t{1} << 16, kPiece, std::size_t{999'983}, 5 * kPiece}) {
      EXPECT_EQ(Written(dir.Path("file"), bytes, part) == bytes, true) << size << " by " << part;
    }
  }
}

// tmpfs does not support O_DIRECT, or ignores it.
TEST(LargeOutputTest, AFileSystemInMemoryWillDo) {
  const int fd = memfd_create("test", MFD_CLOEXEC);
  const std::string bytes = Some(2 * kPiece + 5);
  LargeOutput output(fd);
  EXPECT_TRUE(output.Append(bytes));
  EXPECT_TRUE(output.Finish());
  std::string back(bytes.size() + 1, '\0');
  EXPECT_EQ(pread(fd, back.data(), back.size(), 0), static_cast<ssize_t>(bytes.size()));
  back.pop_back();
  EXPECT_TRUE(back == bytes);
  close(fd);
}

TEST(LargeOutputTest, AFullDiskIsTold) {
  const int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
  LargeOutput small(fd);
  EXPECT_TRUE(small.Append("nothing is written yet"));
  EXPECT_FALSE(small.Finish());
  EXPECT_EQ(errno, ENOSPC);
  LargeOutput large(fd);
  EXPECT_FALSE(large.Append(Some(kPiece)));
  EXPECT_EQ(errno, ENOSPC);
  close(fd);
}

}  // namespace
}  // namespace muster::trainer
