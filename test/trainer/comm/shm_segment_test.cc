#include "trainer/comm/host/shm_segment.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "test/trainer/forked_members.h"

namespace muster::trainer {
namespace {

// The file behind the maker's descriptor, as others reach it.
std::string ProcPath(const ShmSegment& segment) {
  const std::vector<std::string> fields = absl::StrSplit(segment.handle(), ':');
  return absl::StrCat("/proc/", fields[0], "/fd/", fields[1]);
}

TEST(ShmSegmentTest, HasNoNameAndIsForThisUserAlone) {
  const ShmSegment segment = ShmSegment::Create(100'000).value();
  struct stat file {};
  ASSERT_EQ(stat(ProcPath(segment).c_str(), &file), 0);
  EXPECT_EQ(file.st_nlink, 0U);  // nothing in /dev/shm leads to it, so nothing can stay there
  EXPECT_EQ(file.st_mode & 0777U, 0600U);
  // The memory is allocated, and not only reserved.
  EXPECT_GE(file.st_blocks * 512, 100'000);
}

TEST(ShmSegmentTest, OtherProcessesSeeTheSameMemory) {
  const ShmSegment segment = ShmSegment::Create(5000).value();
  ForkedMembers members(2, [&](int member, const auto&) {
    const ShmSegment mine = ShmSegment::Open(segment.handle()).value();
    if (mine.size() != 5000 || mine.data() == segment.data()) return 1;
    mine.data()[member == 0 ? 0 : 4999] = std::byte{7};
    return 0;
  });
  ASSERT_TRUE(members.AllSucceed());
  EXPECT_EQ(segment.data()[0], std::byte{7});
  EXPECT_EQ(segment.data()[4999], std::byte{7});
  EXPECT_EQ(segment.data()[2500], std::byte{0});
}

TEST(ShmSegmentTest, StaysWithThoseWhoHaveItWhenWithdrawn) {
  ShmSegment segment = ShmSegment::Create(5000).value();
  const ShmSegment other = ShmSegment::Open(segment.handle()).value();
  segment.Withdraw();
  EXPECT_FALSE(ShmSegment::Open(segment.handle()).ok());
  segment.data()[1] = std::byte{3};
  EXPECT_EQ(other.data()[1], std::byte{3});
}

TEST(ShmSegmentTest, AnotherFileAtTheHandleIsNotTakenForIt) {
  const ShmSegment segment = ShmSegment::Create(5000).value();
  std::string guess = segment.handle();
  guess.back() = guess.back() == '0' ? '1' : '0';
  EXPECT_EQ(ShmSegment::Open(guess).status().code(), absl::StatusCode::kUnavailable);
  const std::vector<std::string> fields = absl::StrSplit(segment.handle(), ':');
  for (const std::string& wrong : {std::string(), std::string("x"),
                                   absl::StrCat(fields[0], ":", fields[1], ":5001:", fields[3]),
                                   absl::StrCat(fields[0], ":0:", fields[2], ":", fields[3]),
                                   absl::StrCat(fields[0], ":", fields[1], ":", fields[2], ":")}) {
    EXPECT_FALSE(ShmSegment::Open(wrong).ok()) << wrong;
  }
}

TEST(ShmSegmentTest, MoreThanThereIsGivesOneSentence) {
  const auto result = ShmSegment::Create(ShmSegment::Free() + (std::size_t{1} << 40));
  ASSERT_EQ(result.status().code(), absl::StatusCode::kUnavailable);
  const std::string sentence(result.status().message());
  EXPECT_TRUE(absl::StartsWith(sentence, "make ")) << sentence;
  EXPECT_TRUE(absl::StrContains(sentence, "of shared memory in /dev/shm: ")) << sentence;
  EXPECT_TRUE(absl::StrContains(sentence, "are free there; give it more")) << sentence;
}

}  // namespace
}  // namespace muster::trainer
