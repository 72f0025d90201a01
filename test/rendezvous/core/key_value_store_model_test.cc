// Compares KeyValueStore with a model that is too simple to be wrong. Goal: no order of calls makes
// the indexes, the sums or the outbox differ from the plain description.
//
// Method: random operations on few keys with tight limits, so that every branch is met often. After
// each operation its result, the waits it ended (in order), the sums and every value are compared.
// A failure names its seed and step; the same seed gives the same run.
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>
#include <set>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "rendezvous/core/job/key_value_store.h"

namespace muster::rendezvous {
namespace {

// The bytes leave room for values alone most of the time, and for one or two that are queued.
constexpr KeyValueLimits kLimits = {
    .key_bytes = 4, .value_bytes = 5, .keys = 6, .total_bytes = 80, .waits = 5, .wait_bytes = 200};

using Values = std::map<std::string, std::string>;
using Queues = std::map<std::string, std::vector<std::string>>;

std::size_t Bytes(const Values& values, const Queues& queues) {
  std::size_t bytes = 0;
  for (const auto& [key, value] : values) bytes += key.size() + value.size();
  for (const auto& [key, queue] : queues) {
    bytes += key.size();
    for (const std::string& value : queue) bytes += value.size() + 32;
  }
  return bytes;
}

std::optional<std::int64_t> Number(const std::string& text) {
  try {
    return std::stoll(text);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

// The description in the header, done again from scratch at every call.
class Model {
 public:
  struct PendingWait {
    std::set<std::string> unseen;
    std::optional<TimePoint> deadline;
    // At a barrier: `barrier` counts up to `size`, and `unseen` is empty.
    std::optional<std::string> barrier = {};
    std::int64_t size = 0;
  };

  bool Exists(const std::string& key) const { return values.count(key) || queues.count(key); }

  // Applies these writes, in order, if the result keeps the limits.
  bool Write(const std::vector<std::pair<std::string, std::string>>& entries) {
    Values after = values;
    for (const auto& [key, value] : entries) {
      if (key.size() > kLimits.key_bytes || value.size() > kLimits.value_bytes) return false;
      after[key] = value;
    }
    if (!entries.empty() && !Allowed(after, queues)) return false;
    for (const auto& [key, value] : entries) {
      if (!values.count(key)) Created(key);
      values[key] = value;
      if (Number(value)) Counted(key, *Number(value));
    }
    return true;
  }

  bool Push(const std::string& key, const std::string& value) {
    Queues after = queues;
    after[key].push_back(value);
    if (key.size() > kLimits.key_bytes || value.size() > kLimits.value_bytes ||
        !Allowed(values, after)) {
      return false;
    }
    queues = after;
    for (const auto& [waiter, wait] : waits) {
      if (wait.unseen != std::set<std::string>{key}) continue;
      completed.push_back({waiter, WaitEnd::kReady});
      waits.erase(waiter);
      return true;
    }
    Created(key);
    return true;
  }

  // Completes the waits at the barrier for `count` or less.
  void Counted(const std::string& key, std::int64_t count) {
    std::set<std::pair<std::int64_t, WaiterId>> reached;
    for (const auto& [waiter, wait] : waits) {
      if (wait.barrier == key && wait.size <= count) reached.emplace(wait.size, waiter);
    }
    for (const auto& [size, waiter] : reached) {
      waits.erase(waiter);
      completed.push_back({waiter, WaitEnd::kReady});
    }
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
      if (wait.barrier) bytes += wait.barrier->size() + 64;
      for (const std::string& key : wait.unseen) {
        bytes += 16 + (keys.insert(key).second ? key.size() : 0);
      }
    }
    return bytes;
  }

  Values values;
  Queues queues;  // none of them empty
  std::map<WaiterId, PendingWait> waits;
  std::vector<CompletedWait> completed;
  WaiterId last_waiter = 0;

 private:
  static bool Allowed(const Values& values, const Queues& queues) {
    return values.size() + queues.size() <= kLimits.keys &&
           Bytes(values, queues) <= kLimits.total_bytes;
  }

  void Created(const std::string& key) {
    for (auto wait = waits.begin(); wait != waits.end();) {
      wait->second.unseen.erase(key);
      if (!wait->second.unseen.empty() || wait->second.barrier) {
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
    switch (Below(16)) {
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
      case 12: {
        const std::string key = Key(), value = Value();
        ExpectWritten(store_.Push(key, value), model_.Push(key, value));
        break;
      }
      case 13:
        Pop();
        break;
      case 14:
      case 15:
        Barrier();
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
    const auto number = model_.values.count(key) ? Number(model_.values[key]) : 0;
    if (!number) {
      EXPECT_EQ(sum.status().code(), absl::StatusCode::kFailedPrecondition);
      return;
    }
    ExpectWritten(sum.status(), model_.Write({{key, absl::StrCat(*number + delta)}}));
    if (sum.ok()) {
      EXPECT_EQ(*sum, *number + delta);
    }
  }

  void Pop() {
    const std::string key = Key();
    const KeyValueStore::PopOutcome popped = store_.Pop(key);
    const auto queue = model_.queues.find(key);
    if (queue == model_.queues.end()) {
      EXPECT_EQ(popped.length, 0u);
      return;
    }
    EXPECT_EQ(popped.length, queue->second.size());
    EXPECT_EQ(popped.value, queue->second.front());
    queue->second.erase(queue->second.begin());
    if (queue->second.empty()) model_.queues.erase(queue);
  }

  void Barrier() {
    const std::string key = Key();
    const auto size = static_cast<std::int64_t>(Below(6));
    const auto waiter = store_.Barrier(key, size);
    const auto number = model_.values.count(key) ? Number(model_.values[key]) : 0;
    if (!number) {
      EXPECT_EQ(waiter.status().code(), absl::StatusCode::kFailedPrecondition);
      return;
    }
    const std::int64_t count = *number + 1;
    const bool parks = count < size;
    const bool may_park = model_.waits.size() < kLimits.waits &&
                          model_.WaitBytes() + key.size() + 64 <= kLimits.wait_bytes;
    const bool counted = (!parks || may_park) && model_.Write({{key, absl::StrCat(count)}});
    ExpectWritten(waiter.status(), counted);
    if (!counted) return;
    if (!parks) {
      EXPECT_EQ(*waiter, std::nullopt);
      model_.Counted(key, std::numeric_limits<std::int64_t>::max());
      return;
    }
    model_.waits[++model_.last_waiter] = {{}, {}, key, size};
    EXPECT_EQ(*waiter, model_.last_waiter);
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
      if (model_.Exists(key)) continue;
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
    EXPECT_EQ(store_.TotalBytes(), Bytes(model_.values, model_.queues));
    EXPECT_EQ(store_.NumWaits(), model_.waits.size());
    EXPECT_EQ(store_.NextDeadline(), model_.NextDeadline());
    std::vector<std::string_view> keys;
    for (const auto& [key, value] : model_.values) keys.push_back(key);
    EXPECT_EQ(store_.Keys(), keys);
    for (const char* key : {"", "a", "ffff"}) {
      const std::vector<std::string_view> one = {key};
      EXPECT_EQ(store_.Check(one), model_.Exists(key)) << key;
      const auto queue = model_.queues.find(key);
      EXPECT_EQ(store_.QueueLength(key), queue == model_.queues.end() ? 0 : queue->second.size());
    }
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
