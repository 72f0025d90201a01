// Compares the meetings of a KeyValueStore with a model that is too simple to be wrong. Goal: no
// order of arrivals and departures makes the indexes or the sums differ from the plain description.
//
// Method: as in key_value_store_model_test.cc, which does not cover meetings.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "rendezvous/core/job/key_value_store.h"

namespace muster::rendezvous {
namespace {

constexpr KeyValueLimits kMeetingLimits = {.key_bytes = 4, .waits = 6, .wait_bytes = 700};

class MeetingPair {
 public:
  explicit MeetingPair(unsigned seed) : random_(seed) {}

  // One random operation on both.
  void Step() {
    switch (Below(5)) {
      case 0: {
        const WaiterId waiter = 1 + Below(last_waiter_ + 1);
        EXPECT_EQ(store_.CancelWait(waiter), waits_.erase(waiter) == 1);
        break;
      }
      case 1:
        now_ += std::chrono::milliseconds(Below(20));
        store_.Tick(now_);
        Tick();
        break;
      default:
        Meet();
        break;
    }
    EXPECT_EQ(store_.TakeCompleted(), std::exchange(completed_, {}));
    EXPECT_EQ(store_.NumWaits(), waits_.size());
    EXPECT_EQ(store_.NumKeys(), 0u);
    std::optional<TimePoint> next;
    for (const auto& [waiter, wait] : waits_) {
      if (wait.deadline && (!next || *wait.deadline < *next)) next = wait.deadline;
    }
    EXPECT_EQ(store_.NextDeadline(), next);
  }

 private:
  struct Wait {
    std::string name;
    std::uint64_t count = 0;
    std::string caller;
    std::optional<TimePoint> deadline;
    std::uint64_t most = 0;  // that have been there at once since

    std::size_t bytes() const { return name.size() + caller.size() + 128; }
  };

  std::uint64_t Below(std::uint64_t n) { return random_() % n; }
  std::string OneOf(const std::vector<std::string>& words) { return words[Below(words.size())]; }

  std::set<WaiterId> Present(const std::string& name) const {
    std::set<WaiterId> present;
    for (const auto& [waiter, wait] : waits_) {
      if (wait.name == name) present.insert(waiter);
    }
    return present;
  }

  void Tick() {
    std::set<std::pair<TimePoint, WaiterId>> due;
    for (const auto& [waiter, wait] : waits_) {
      if (wait.deadline && *wait.deadline <= now_) due.emplace(*wait.deadline, waiter);
    }
    for (const auto& [deadline, waiter] : due) {
      completed_.push_back({waiter, WaitEnd::kTimedOut, waits_[waiter].most});
      waits_.erase(waiter);
    }
  }

  void Meet() {
    Wait wait{.name = OneOf({"", "a", "a", "bbbb", "long!"}),
              .count = Below(5),
              .caller = OneOf({"", "", "x", "y", "long!"})};
    if (Below(2) == 0) wait.deadline = now_ + std::chrono::milliseconds(Below(50));
    const auto waiter = store_.Meet(
        {.name = wait.name, .count = wait.count, .caller = wait.caller, .deadline = wait.deadline});
    EXPECT_EQ(waiter.status().code(), Arrive(wait)) << waiter.status();
    if (!waiter.ok()) return;
    const bool waits = !waits_.empty() && waits_.rbegin()->first > arrived_;
    EXPECT_EQ(*waiter, waits ? std::optional(last_waiter_) : std::nullopt);
    arrived_ = last_waiter_;
  }

  absl::StatusCode Arrive(const Wait& wait) {
    if (std::max(wait.name.size(), wait.caller.size()) > kMeetingLimits.key_bytes) {
      return absl::StatusCode::kResourceExhausted;
    }
    if (wait.count == 0) return absl::StatusCode::kInvalidArgument;
    std::set<WaiterId> present = Present(wait.name);
    if (!present.empty() && waits_[*present.begin()].count != wait.count) {
      return absl::StatusCode::kFailedPrecondition;
    }
    for (const WaiterId other : present) {
      if (wait.caller.empty() || waits_[other].caller != wait.caller) continue;
      End(other, WaitEnd::kReplaced);
      present.erase(other);
      break;
    }
    if (present.size() + 1 == wait.count) {
      for (const WaiterId other : present) End(other, WaitEnd::kReady);
      return absl::StatusCode::kOk;
    }
    std::size_t bytes = wait.bytes();
    for (const auto& [other, pending] : waits_) bytes += pending.bytes();
    if (waits_.size() == kMeetingLimits.waits || bytes > kMeetingLimits.wait_bytes) {
      return absl::StatusCode::kResourceExhausted;
    }
    waits_[++last_waiter_] = wait;
    present.insert(last_waiter_);
    for (const WaiterId other : present) {
      waits_[other].most = std::max<std::uint64_t>(waits_[other].most, present.size());
    }
    return absl::StatusCode::kOk;
  }

  void End(WaiterId waiter, WaitEnd end) {
    waits_.erase(waiter);
    completed_.push_back({waiter, end});
  }

  std::mt19937_64 random_;
  TimePoint now_;
  KeyValueStore store_{kMeetingLimits};
  // The model.
  std::map<WaiterId, Wait> waits_;
  std::vector<CompletedWait> completed_;
  WaiterId last_waiter_ = 0;
  WaiterId arrived_ = 0;  // the last of those whose number has been compared
};

TEST(MeetingModelTest, RandomCallsNeverTellStoreAndModelApart) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    MeetingPair pair(seed);
    for (int step = 0; step < 500; ++step) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, ", step ", step));
      pair.Step();
      if (::testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace muster::rendezvous
