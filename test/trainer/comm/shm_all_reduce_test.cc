// All-reduce between real processes: every size and type, and members that die, stop or do not
// arrive.
#include "trainer/comm/host/shm_all_reduce.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "test/trainer/forked_members.h"

namespace muster::trainer {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kWindow = 4096;

// Member i is rank 10 + i, so that a message that confuses them is noticed.
ShmBarrier::Options MemberOptions(int member, int members) {
  ShmBarrier::Options options{.member = member};
  for (int i = 0; i < members; ++i) options.ranks.push_back(10 + i);
  return options;
}

ShmAllReduce Join(const ShmSegment& segment, const ShmBarrier::Options& options) {
  return ShmAllReduce(ShmSegment::Open(segment.handle()).value(), options);
}

ShmSegment SegmentFor(int members) {
  return ShmSegment::Create(ShmAllReduce::SegmentBytes(members, kWindow)).value();
}

std::byte* Bytes(std::vector<float>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

std::vector<float> Values(int member, std::size_t count, int salt) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>((i * 31 + static_cast<std::size_t>(salt)) % 1000 +
                                   static_cast<std::size_t>(member) * 1000);
  }
  return values;
}

// The sum of Values() over the members.
std::vector<float> Sums(int members, std::size_t count, int salt) {
  std::vector<float> sums(count);
  for (int member = 0; member < members; ++member) {
    const std::vector<float> values = Values(member, count, salt);
    for (std::size_t i = 0; i < count; ++i) sums[i] += values[i];
  }
  return sums;
}

class ShmAllReduceTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Members, ShmAllReduceTest, testing::Values(1, 2, 3, 4),
                         testing::PrintToStringParamName());

TEST_P(ShmAllReduceTest, AddsUpTensorsOfAnySize) {
  const int members = GetParam();
  const ShmSegment segment = SegmentFor(members);
  ForkedMembers processes(members, [&](int member, const ForkedMembers::Say& say) {
    ShmAllReduce all = Join(segment, MemberOptions(member, members));
    // Empty, less than a cache line per member, one window, and many with a remainder.
    for (const std::size_t count : {0, 1, 3, 17, 100, 1023, 1024, 1025, 5000, 20000}) {
      std::vector<float> data = Values(member, count, 0);
      if (!all.AllReduce(ElementType::kFloat, Bytes(data), count, 1).ok() ||
          data != Sums(members, count, 0)) {
        say(absl::StrCat("all-reduce of ", count));
        return 1;
      }
    }
    return 0;
  });
  EXPECT_TRUE(processes.AllSucceed());
}

TEST_P(ShmAllReduceTest, HalvesMakeAWhole) {
  const int members = GetParam();
  const ShmSegment segment = SegmentFor(members);
  ForkedMembers processes(members, [&](int member, const ForkedMembers::Say& say) {
    ShmAllReduce all = Join(segment, MemberOptions(member, members));
    const auto n = static_cast<std::size_t>(members);
    for (const std::size_t part : {0, 1, 5, 100, 255, 256, 257, 1024, 5000}) {
      std::vector<float> data = Values(member, part * n, static_cast<int>(part));
      const std::vector<float> sums = Sums(members, part * n, static_cast<int>(part));
      std::vector<float> mine(part);
      const std::int64_t moved = all.moved_bytes();
      bool right = all.ReduceScatter(ElementType::kFloat, Bytes(data), part * n, Bytes(mine)).ok();
      const auto own = sums.begin() + static_cast<std::ptrdiff_t>(part) * member;
      right = right && std::equal(mine.begin(), mine.end(), own);
      std::vector<float> whole(part * n);
      right = right && all.AllGather(Bytes(mine), part * sizeof(float), Bytes(whole)).ok();
      if (!right || whole != sums ||
          all.moved_bytes() - moved != static_cast<std::int64_t>(2 * (n - 1) * part * 4)) {
        say(absl::StrCat("parts of ", part));
        return 1;
      }
    }
    return 0;
  });
  EXPECT_TRUE(processes.AllSucceed());
}

TEST_P(ShmAllReduceTest, OperationsFollowOneAnotherWithoutMixingUp) {
  const int members = GetParam();
  const ShmSegment segment = SegmentFor(members);
  ForkedMembers processes(members, [&](int member, const ForkedMembers::Say& say) {
    ShmAllReduce all = Join(segment, MemberOptions(member, members));
    for (int round = 0; round < 300; ++round) {
      const std::size_t count = static_cast<std::size_t>(round) * 37 % 3000 + 1;
      std::vector<float> data = Values(member, count, round);
      bool right = true;
      if (round % 5 == 4) {
        std::vector<float> whole(count * static_cast<std::size_t>(members));
        right = all.AllGather(Bytes(data), count * sizeof(float), Bytes(whole)).ok();
        for (int other = 0; other < members; ++other) {
          const std::vector<float> theirs = Values(other, count, round);
          right = right && std::equal(theirs.begin(), theirs.end(),
                                      whole.begin() + static_cast<std::ptrdiff_t>(count) * other);
        }
      } else if (round % 3 == 0) {
        const Waiting waiting = round % 2 == 0 ? Waiting::kSpin : Waiting::kSleep;
        right = all.AllReduce(ElementType::kFloat, Bytes(data), count, 1, waiting).ok() &&
                data == Sums(members, count, round);
      } else if (round % 3 == 1) {
        right = all.Reduce(ElementType::kFloat, Bytes(data), count, 1).ok() &&
                (member != 0 || data == Sums(members, count, round));
      } else {
        right = all.Broadcast(Bytes(data), count * sizeof(float)).ok() &&
                data == Values(0, count, round);
      }
      if (!right) {
        say(absl::StrCat("round ", round));
        return 1;
      }
    }
    return 0;
  });
  EXPECT_TRUE(processes.AllSucceed());
}

TEST_P(ShmAllReduceTest, EveryElementTypeAndScale) {
  const int members = GetParam();
  const ShmSegment segment = SegmentFor(members);
  ForkedMembers processes(members, [&](int member, const ForkedMembers::Say& say) {
    ShmAllReduce all = Join(segment, MemberOptions(member, members));
    constexpr std::size_t kCount = 3001;
    // Member m gives m + 1 everywhere, which no type rounds; the mean is (members + 1) / 2.
    const double scale = 1.0 / members;
    const float mean = static_cast<float>(members + 1) / 2;
    std::vector<double> doubles(kCount, member + 1);
    std::vector<c10::Half> halves(kCount, static_cast<float>(member + 1));
    std::vector<c10::BFloat16> bfloats(kCount, static_cast<float>(member + 1));
    const auto reduce = [&](ElementType type, auto& data) {
      return all.AllReduce(type, reinterpret_cast<std::byte*>(data.data()), kCount, scale).ok();
    };
    if (!reduce(ElementType::kDouble, doubles) || !reduce(ElementType::kHalf, halves) ||
        !reduce(ElementType::kBFloat16, bfloats)) {
      return 1;
    }
    for (std::size_t i = 0; i < kCount; ++i) {
      if (std::abs(doubles[i] - mean) > 1e-15 * mean || halves[i] != mean || bfloats[i] != mean) {
        say(absl::StrCat("element ", i));
        return 1;
      }
    }
    return 0;
  });
  EXPECT_TRUE(processes.AllSucceed());
}

TEST(ShmAllReduceTrafficTest, MovesWhatTheRingFormulaSays) {
  constexpr int kMembers = 4;
  constexpr std::size_t kCount = 16384;  // whole windows, and whole cache lines for each member
  const ShmSegment segment = SegmentFor(kMembers);
  ForkedMembers processes(kMembers, [&](int member, const ForkedMembers::Say& say) {
    ShmAllReduce all = Join(segment, MemberOptions(member, kMembers));
    std::vector<float> data(kCount);
    if (!all.AllReduce(ElementType::kFloat, Bytes(data), kCount, 1).ok()) return 1;
    say(absl::StrCat(all.moved_bytes()));
    return all.moved_bytes() == 2 * (kMembers - 1) * kCount * sizeof(float) / kMembers ? 0 : 1;
  });
  EXPECT_TRUE(processes.AllSucceed());
}

// Members that sum until an error; then they report it and exit with 0.
class ShmAllReduceFaultTest : public testing::Test {
 protected:
  static constexpr int kMembers = 3;

  static int AddUpForEver(const ShmSegment& segment, const ShmBarrier::Options& options,
                          const ForkedMembers::Say& say, int stop_in_round = -1) {
    ShmAllReduce all = Join(segment, options);
    std::vector<float> data(50000);
    for (int round = 0;; ++round) {
      if (round == stop_in_round) raise(SIGSTOP);
      const Waiting waiting = round % 2 == 0 ? Waiting::kSpin : Waiting::kSleep;
      const absl::Status status =
          all.AllReduce(ElementType::kFloat, Bytes(data), data.size(), 1, waiting);
      if (round == 100) say("under way. ");
      if (status.ok()) continue;
      // The error lasts.
      if (all.Broadcast(Bytes(data), 4) != status) return 1;
      say(std::string(status.message()) + ".");
      return 0;
    }
  }

  void Start() {
    processes_.emplace(kMembers, [this](int member, const ForkedMembers::Say& say) {
      return AddUpForEver(segment_, MemberOptions(member, kMembers), say);
    });
    for (int member = 0; member < kMembers; ++member) {
      ASSERT_TRUE(processes_->WaitFor(member, "under way"));
    }
  }

  void ExpectOthersSay(const std::string& sentence) {
    for (const int member : {0, 2}) {
      EXPECT_EQ(processes_->Wait(member), 0);
      EXPECT_TRUE(absl::StrContains(processes_->said(member), sentence))
          << processes_->said(member);
    }
  }

  std::string Victim() const {
    return absl::StrCat("shared memory: rank 11 (pid ", processes_->pid(1), ") ");
  }

  const ShmSegment segment_ = SegmentFor(kMembers);
  std::optional<ForkedMembers> processes_;
};

// "kill -9 of one rank, and the others hang forever."
TEST_F(ShmAllReduceFaultTest, AKilledMemberIsFoundAndNamed) {
  Start();
  processes_->Signal(1, SIGKILL);
  ExpectOthersSay(Victim() + "is gone.");  // it is a zombie until the end of the test
}

TEST_F(ShmAllReduceFaultTest, AKilledMemberThatWasWaitedForIsFoundAndNamed) {
  Start();
  processes_->Signal(0, SIGSTOP);  // so that it is not noticed before it is waited for
  processes_->Signal(2, SIGSTOP);
  processes_->Signal(1, SIGKILL);
  EXPECT_EQ(processes_->Wait(1), -SIGKILL);
  processes_->Signal(0, SIGCONT);
  processes_->Signal(2, SIGCONT);
  ExpectOthersSay(Victim() + "is gone.");
}

// A user attached gdb to a rank, and a tenth of a second later the job was dead.
TEST_F(ShmAllReduceFaultTest, AStoppedMemberHasAllTheTimeThereIsAndIsThenNamed) {
  processes_.emplace(kMembers, [this](int member, const ForkedMembers::Say& say) {
    ShmBarrier::Options options = MemberOptions(member, kMembers);
    options.timeout = milliseconds(500);
    return AddUpForEver(segment_, options, say, member == 1 ? 50 : -1);
  });
  ExpectOthersSay(Victim() +
                  "is stopped, by a signal or a debugger, and was not continued within 0.5 s.");
}

TEST_F(ShmAllReduceFaultTest, AMemberThatIsContinuedInTimeIsForgiven) {
  processes_.emplace(kMembers, [this](int member, const ForkedMembers::Say& say) {
    return AddUpForEver(segment_, MemberOptions(member, kMembers), say, member == 1 ? 50 : -1);
  });
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(processes_->pid(1)), &info, WSTOPPED | WNOWAIT), 0);
  processes_->Signal(1, SIGCONT);
  for (int member = 0; member < kMembers; ++member) {
    EXPECT_TRUE(processes_->WaitFor(member, "under way"));  // which is later than round 50
  }
  processes_->Signal(1, SIGKILL);
  ExpectOthersSay(Victim() + "is gone.");
}

TEST_F(ShmAllReduceFaultTest, AMemberThatStaysAwayIsNamedWhenTheTimeIsOver) {
  processes_.emplace(kMembers, [this](int member, const ForkedMembers::Say& say) {
    ShmBarrier::Options options = MemberOptions(member, kMembers);
    options.timeout = milliseconds(300);
    if (member != 1) return AddUpForEver(segment_, options, say);
    const ShmAllReduce all = Join(segment_, options);
    for (;;) pause();
  });
  ExpectOthersSay(Victim() + "did not come within 0.3 s.");
}

TEST_F(ShmAllReduceFaultTest, AMemberThatLeavesIsNotWaitedFor) {
  processes_.emplace(kMembers, [this](int member, const ForkedMembers::Say& say) {
    const ShmBarrier::Options options = MemberOptions(member, kMembers);
    if (member != 1) return AddUpForEver(segment_, options, say);
    ShmAllReduce all = Join(segment_, options);
    std::vector<float> data(50000);
    if (!all.AllReduce(ElementType::kFloat, Bytes(data), data.size(), 1).ok()) return 1;
    all.Leave();
    for (;;) pause();
  });
  ExpectOthersSay(Victim() + "has given up.");
}

}  // namespace
}  // namespace muster::trainer
