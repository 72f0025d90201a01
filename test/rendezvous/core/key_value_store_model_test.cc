// Compares KeyValueStore with a model that is too simple to be wrong: goal is that no order of
// calls makes the indexes, the sums or the outbox drift from what the plain description says.
//
// Method: random operations on few keys with tight limits, so that every branch is met often. After
// each operation its result, the waits it ended (in order), the sums and every value are compared.
// A failure names its seed and step; the same seed gives the same run.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "rendezvous/core/key_value_store.h"

namespace muster::rendezvous {
namespace {

constexpr KeyValueLimits kLimits = {
    .key_bytes = 4, .value_bytes = 5, .keys = 6, .total_bytes = 32, .waits = 5, .wait_bytes = 160};

using Values = std::map<std::string, std::string>;

std::size_t Bytes(const Values& values) {
  std::size_t bytes = 0;
  for (const auto& [key, value] : values) bytes += key.size() + value.size();
  return bytes;
}

// The description in the header, done again from scratch at every call.
class Model {
 public:
  struct PendingWait {
    std::set<std::string> unseen;
    std::optional<TimePoint> deadline;
  };

  // Makes these writes, in order, if the outcome keeps the limits.
  bool Write(const std::vector<std::pair<std::string, std::string>>& entries) {
    Values after = values;
    for (const auto& [key, value] : entries) {
      if (key.size() > kLimits.key_bytes || value.size() > kLimits.value_bytes) return false;
      after[key] = value;
    }
    if (!entries.empty() && (after.size() > kLimits.keys || Bytes(after) > kLimits.total_bytes)) {
      return false;
    }
    for (const auto& [key, value] : entries) {
      if (!values.count(key)) Created(key);
      values[key] = value;
    }
    return true;
  }

  WaiterId Wait(const std::set<std::string>& missing, std::optional<TimePoint> deadline) {
    waits[++last_waiter] = {missing, deadline};
    return last_waiter;
  }

  void Tick(TimePoint now) {
    std::set<std::pair<TimePoint, WaiterId>> due;
    for (const auto& [waiter, wait] : waits) {
      if (wait.deadline && *wait.deadline <= now) due.emplace(*wait.deadline, waiter);
    }
    for (const auto& [deadline, waiter] : due) {
      waits.erase(waiter);
      completed.push_back({waiter, WaitEnd::kTimedOut});
    }
  }

  std::optional<TimePoint> NextDeadline() const {
    std::optional<TimePoint> next;
    for (const auto& [waiter, wait] : waits) {
      if (wait.deadline && (!next || *wait.deadline < *next)) next = wait.deadline;
    }
    return next;
  }

  std::size_t WaitBytes() const {
    std::size_t bytes = 0;
    std::set<std::string> keys;
    for (const auto& [waiter, wait] : waits) {
      for (const std::string& key : wait.unseen) {
        bytes += 16 + (keys.insert(key).second ? key.size() : 0);
      }
    }
    return bytes;
  }

  Values values;
  std::map<WaiterId, PendingWait> waits;
  std::vector<CompletedWait> completed;
  WaiterId last_waiter = 0;

 private:
  void Created(const std::string& key) {
    for (auto wait = waits.begin(); wait != waits.end();) {
      wait->second.unseen.erase(key);
      if (!wait->second.unseen.empty()) {
        ++wait;
        continue;
      }
      completed.push_back({wait->first, WaitEnd::kReady});
      wait = waits.erase(wait);
    }
  }
};

class Pair {
 public:
  explicit Pair(unsigned seed) : random_(seed) {}

  // One random operation on both.
  void Step() {
    switch (Below(12)) {
      case 0:
      case 1: {
        const std::string key = Key(), value = Value();
        ExpectWritten(store_.Set(key, value), model_.Write({{key, value}}));
        break;
      }
      case 2:
        Add();
        break;
      case 3:
        CompareSet();
        break;
      case 4: {
        const std::string key = Key(), suffix = Value();
        const std::string before = model_.values.count(key) ? model_.values[key] : "";
        ExpectWritten(store_.Append(key, suffix), model_.Write({{key, before + suffix}}));
        break;
      }
      case 5:
      case 6: {
        const std::string key = Key();
        EXPECT_EQ(store_.Delete(key), model_.values.erase(key) == 1);
        break;
      }
      case 7: {
        std::vector<std::pair<std::string, std::string>> entries(Below(4));
        for (auto& entry : entries) entry = {Key(), Value()};
        const std::vector<KeyValueStore::Entry> views(entries.begin(), entries.end());
        ExpectWritten(store_.MultiSet(views), model_.Write(entries));
        break;
      }
      case 8:
      case 9:
        Wait();
        break;
      case 10: {
        const WaiterId waiter = 1 + Below(model_.last_waiter + 1);
        EXPECT_EQ(store_.CancelWait(waiter), model_.waits.erase(waiter) == 1);
        break;
      }
      case 11:
        now_ += std::chrono::milliseconds(Below(20));
        store_.Tick(now_);
        model_.Tick(now_);
        break;
    }
    ExpectSame();
  }

 private:
  std::uint64_t Below(std::uint64_t n) { return random_() % n; }

  std::string Key() {
    static const std::vector<std::string> keys = {"", "a", "b", "c", "dd", "ee", "ffff", "long!"};
    return keys[Below(keys.size())];
  }

  std::string Value() {
    static const std::vector<std::string> values = {"", "1", "-7", "x", "99999", "6bytes"};
    return values[Below(values.size())];
  }

  void ExpectWritten(const absl::Status& status, bool written) {
    EXPECT_EQ(status.code(), written ? absl::StatusCode::kOk : absl::StatusCode::kResourceExhausted)
        << status;
  }

  void Add() {
    const std::string key = Key();
    const std::int64_t delta = static_cast<std::int64_t>(Below(100)) - 50;
    const auto sum = store_.Add(key, delta);
    std::int64_t number = 0;
    if (model_.values.count(key)) {
      try {
        number = std::stoll(model_.values[key]);
      } catch (const std::invalid_argument&) {
        EXPECT_EQ(sum.status().code(), absl::StatusCode::kFailedPrecondition);
        return;
      }
    }
    ExpectWritten(sum.status(), model_.Write({{key, absl::StrCat(number + delta)}}));
    if (sum.ok()) {
      EXPECT_EQ(*sum, number + delta);
    }
  }

  void CompareSet() {
    const std::string key = Key(), expected = Value(), desired = Value();
    const auto outcome = store_.CompareSet(key, expected, desired);
    const bool exists = model_.values.count(key) == 1;
    const std::string current = exists ? model_.values[key] : "";
    if (current != expected) {
      ASSERT_TRUE(outcome.ok());
      EXPECT_FALSE(outcome->stored);
      EXPECT_EQ(outcome->value, exists ? current : expected);
      return;
    }
    ExpectWritten(outcome.status(), model_.Write({{key, desired}}));
    if (outcome.ok()) {
      EXPECT_TRUE(outcome->stored);
      EXPECT_EQ(outcome->value, desired);
    }
  }

  void Wait() {
    std::vector<std::string> keys(Below(4));
    for (std::string& key : keys) key = Key();
    std::optional<TimePoint> deadline;
    if (Below(2) == 0) deadline = now_ + std::chrono::milliseconds(Below(50));
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    const auto waiter = store_.Wait(views, deadline);

    std::set<std::string> missing;
    std::size_t bytes = model_.WaitBytes();
    bool allowed = true;
    for (const std::string& key : keys) {
      if (model_.values.count(key)) continue;
      missing.insert(key);
      bytes += key.size() + 16;
      allowed = allowed && key.size() <= kLimits.key_bytes;
    }
    if (missing.empty()) {
      ASSERT_TRUE(waiter.ok());
      EXPECT_EQ(*waiter, std::nullopt);
      return;
    }
    allowed = allowed && model_.waits.size() < kLimits.waits && bytes <= kLimits.wait_bytes;
    ExpectWritten(waiter.status(), allowed);
    if (waiter.ok()) {
      EXPECT_EQ(*waiter, model_.Wait(missing, deadline));
    }
  }

  void ExpectSame() {
    EXPECT_EQ(store_.TakeCompleted(), std::exchange(model_.completed, {}));
    EXPECT_EQ(store_.NumKeys(), model_.values.size());
    EXPECT_EQ(store_.TotalBytes(), Bytes(model_.values));
    EXPECT_EQ(store_.NumWaits(), model_.waits.size());
    EXPECT_EQ(store_.NextDeadline(), model_.NextDeadline());
    for (const auto& [key, value] : model_.values) {
      const std::string* stored = store_.Get(key);
      ASSERT_NE(stored, nullptr) << key;
      EXPECT_EQ(*stored, value);
    }
  }

  std::mt19937_64 random_;
  TimePoint now_;
  KeyValueStore store_{kLimits};
  Model model_;
};

TEST(KeyValueStoreModelTest, RandomCallsNeverTellStoreAndModelApart) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    Pair pair(seed);
    for (int step = 0; step < 500; ++step) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, ", step ", step));
      pair.Step();
      if (::testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace muster::rendezvous
