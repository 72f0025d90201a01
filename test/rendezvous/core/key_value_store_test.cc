// Runs the transcripts test/rendezvous/testdata/key_value_store_*.txt. Their commands:
//
//   limits NAME=N ...                      a new store, with these limits changed
//   get K                                  "value" or missing
//   set K V · append K V                   ok
//   add K N · add_exactly K N              the sum; the second refuses one that does not fit
//   compare_set K EXPECTED DESIRED         stored or kept, with the value replied
//   delete K                               deleted or missing
//   check K ...                            yes or no
//   multi_get K ... · multi_set K V ...    as get, a line each · ok
//   num_keys · num_waits                   counts
//   keys                                   "key" ... in order, or none
//   push K V · pop K · queue_length K      ok · the length before and "value" · a count
//   barrier K SIZE                         as wait
//   meet NAME COUNT [by=CALLER] [within=MS]   as wait
//   wait K ... [within=MS]                 ready, or pending with the number of the wait
//   cancel N                               cancelled or not pending
//   tick · next_deadline                   nothing · @MS or none
//
// Every command is followed by the waits that it ended: "wait 1 ready", "wait 1 timed out",
// at a meeting "wait 1 timed out with 2 there", "wait 1 replaced".
#include "rendezvous/core/job/key_value_store.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "test/rendezvous/support/transcript.h"

namespace muster::rendezvous {
namespace {

using Lines = std::vector<std::string>;

std::string Quoted(const std::string& bytes) {
  return absl::StrCat("\"", absl::CEscape(bytes), "\"");
}

std::string QuotedOrMissing(const std::string* value) {
  return value == nullptr ? "missing" : Quoted(*value);
}

std::string Shown(const absl::Status& status) {
  if (status.ok()) return "ok";
  return absl::StrCat(absl::StatusCodeToString(status.code()), ": ", status.message());
}

std::string Shown(const CompletedWait& wait) {
  switch (wait.end) {
    case WaitEnd::kReady:
      return " ready";
    case WaitEnd::kTimedOut:
      return absl::StrCat(" timed out",
                          wait.reached == 0 ? "" : absl::StrCat(" with ", wait.reached, " there"));
    case WaitEnd::kReplaced:
      return " replaced";
  }
  return " ended";
}

std::int64_t StoreNumber(const std::string& word) {
  std::int64_t number = 0;
  EXPECT_TRUE(absl::SimpleAtoi(word, &number)) << word;
  return number;
}

class StorePlayer {
 public:
  Lines operator()(TimePoint now, const Lines& words) {
    const Lines arguments(words.begin() + 1, words.end());
    Lines lines = Do(now, words.front(), arguments);
    for (const CompletedWait& wait : store_->TakeCompleted()) {
      lines.push_back(absl::StrCat("wait ", wait.waiter, Shown(wait)));
    }
    return lines;
  }

 private:
  Lines Do(TimePoint now, const std::string& command, Lines words) {
    if (command == "limits") return SetLimits(words);
    if (command == "tick") {
      store_->Tick(now);
      return {};
    }
    if (command == "next_deadline") {
      const std::optional<TimePoint> deadline = store_->NextDeadline();
      if (!deadline) return {"none"};
      return {absl::StrCat("@", deadline->time_since_epoch() / std::chrono::milliseconds(1))};
    }
    if (command == "num_waits") return {absl::StrCat(store_->NumWaits())};
    if (command == "num_keys") {
      return {absl::StrCat(store_->NumKeys(), " keys, ", store_->TotalBytes(), " bytes")};
    }
    if (command == "wait") return Wait(now, words);
    if (command == "meet") return Meet(now, words);
    if (command == "cancel") {
      const auto waiter = static_cast<WaiterId>(StoreNumber(words.at(0)));
      return {store_->CancelWait(waiter) ? "cancelled" : "not pending"};
    }

    if (command == "barrier")
      return Pending(store_->Barrier(words.at(0), StoreNumber(words.at(1))));
    if (command == "push") return {Shown(store_->Push(words.at(0), words.at(1)))};
    if (command == "queue_length") return {absl::StrCat(store_->QueueLength(words.at(0)))};
    if (command == "pop") {
      const KeyValueStore::PopOutcome popped = store_->Pop(words.at(0));
      return {popped.length == 0 ? "nothing"
                                 : absl::StrCat(popped.length, " ", Quoted(popped.value))};
    }
    if (command == "keys") {
      std::string line;
      for (const std::string_view key : store_->Keys()) {
        absl::StrAppend(&line, line.empty() ? "" : " ", Quoted(std::string(key)));
      }
      return {line.empty() ? "none" : line};
    }

    const std::vector<std::string_view> views(words.begin(), words.end());
    if (command == "check") return {store_->Check(views) ? "yes" : "no"};
    if (command == "multi_get") {
      Lines lines;
      for (const std::string* value : store_->MultiGet(views)) {
        lines.push_back(QuotedOrMissing(value));
      }
      return lines;
    }
    if (command == "multi_set") {
      std::vector<KeyValueStore::Entry> entries;
      for (std::size_t i = 0; i < words.size(); i += 2) {
        entries.emplace_back(words.at(i), words.at(i + 1));
      }
      return {Shown(store_->MultiSet(entries))};
    }
    if (command == "get") return {QuotedOrMissing(store_->Get(words.at(0)))};
    if (command == "set") return {Shown(store_->Set(words.at(0), words.at(1)))};
    if (command == "append") return {Shown(store_->Append(words.at(0), words.at(1)))};
    if (command == "delete") return {store_->Delete(words.at(0)) ? "deleted" : "missing"};
    if (command == "add" || command == "add_exactly") {
      using Overflow = KeyValueStore::Overflow;
      const auto sum = store_->Add(words.at(0), StoreNumber(words.at(1)),
                                   command == "add" ? Overflow::kWraps : Overflow::kRefused);
      return {sum.ok() ? absl::StrCat(*sum) : Shown(sum.status())};
    }
    if (command == "compare_set") {
      const auto outcome = store_->CompareSet(words.at(0), words.at(1), words.at(2));
      if (!outcome.ok()) return {Shown(outcome.status())};
      return {absl::StrCat(outcome->stored ? "stored " : "kept ", Quoted(outcome->value))};
    }
    return {absl::StrCat("no such command: ", command)};
  }

  Lines SetLimits(const Lines& words) {
    KeyValueLimits limits;
    const std::map<std::string, std::size_t*> by_name = {
        {"key_bytes", &limits.key_bytes}, {"value_bytes", &limits.value_bytes},
        {"keys", &limits.keys},           {"total_bytes", &limits.total_bytes},
        {"waits", &limits.waits},         {"wait_bytes", &limits.wait_bytes}};
    for (const std::string& word : words) {
      const std::pair<std::string, std::string> parts = absl::StrSplit(word, '=');
      *by_name.at(parts.first) = static_cast<std::size_t>(StoreNumber(parts.second));
    }
    store_ = std::make_unique<KeyValueStore>(limits);
    return {};
  }

  Lines Wait(TimePoint now, Lines words) {
    const std::optional<TimePoint> deadline = TakeDeadline(now, words);
    const std::vector<std::string_view> keys(words.begin(), words.end());
    return Pending(store_->Wait(keys, deadline));
  }

  Lines Meet(TimePoint now, Lines words) {
    const std::optional<TimePoint> deadline = TakeDeadline(now, words);
    const std::string caller = words.size() > 2 ? words[2].substr(std::string("by=").size()) : "";
    return Pending(store_->Meet({.name = words.at(0),
                                 .count = static_cast<std::uint64_t>(StoreNumber(words.at(1))),
                                 .caller = caller,
                                 .deadline = deadline}));
  }

  // Removes "within=MS" from the end.
  static std::optional<TimePoint> TakeDeadline(TimePoint now, Lines& words) {
    if (words.empty() || !words.back().starts_with("within=")) return std::nullopt;
    const TimePoint deadline = now + std::chrono::milliseconds(StoreNumber(words.back().substr(7)));
    words.pop_back();
    return deadline;
  }

  static Lines Pending(const absl::StatusOr<std::optional<WaiterId>>& waiter) {
    if (!waiter.ok()) return {Shown(waiter.status())};
    if (!waiter->has_value()) return {"ready"};
    return {absl::StrCat("pending ", **waiter)};
  }

  std::unique_ptr<KeyValueStore> store_ = std::make_unique<KeyValueStore>();
};

class KeyValueStoreTranscriptTest : public ::testing::TestWithParam<std::string> {};

TEST_P(KeyValueStoreTranscriptTest, SaysWhatHappens) {
  StorePlayer player;
  ExpectTranscript(GetParam(), std::ref(player));
}

INSTANTIATE_TEST_SUITE_P(All, KeyValueStoreTranscriptTest,
                         ::testing::ValuesIn(TranscriptPaths("key_value_store_")),
                         [](const auto& info) { return TranscriptName(info.param); });

TEST(KeyValueStoreTest, DefaultLimitsAreThoseOfTheProtocol) {
  KeyValueStore store;
  const std::string key(512, 'k');
  EXPECT_TRUE(store.Set(key, std::string(1 << 20, 'v')).ok());
  EXPECT_FALSE(store.Set(key + "k", "v").ok());
  EXPECT_FALSE(store.Append(key, "v").ok());
  for (int i = 1; store.Set(absl::StrCat(i), std::string(1 << 20, 'v')).ok(); ++i) {
    ASSERT_LT(i, 64);
  }
  EXPECT_EQ(store.NumKeys(), 63u);
  EXPECT_LE(store.TotalBytes(), 64u << 20);
}

// Would take minutes, and time out, if a write cost time for each wait on another key, or the end
// of a wait for each other wait on the same key.
TEST(KeyValueStoreTest, HundredThousandWaitsOnOneKeyCostTheOtherKeysNothing) {
  KeyValueStore store;
  constexpr WaiterId kWaits = 100'000;
  const std::vector<std::string_view> key = {"late"};
  for (WaiterId i = 1; i <= kWaits; ++i) {
    const auto waiter = store.Wait(key, TimePoint(std::chrono::milliseconds(i)));
    ASSERT_TRUE(waiter.ok()) << waiter.status();
    ASSERT_EQ(*waiter, i);
  }
  EXPECT_EQ(store.Wait(key, std::nullopt).status().code(), absl::StatusCode::kResourceExhausted);
  for (WaiterId i = 1; i <= kWaits; ++i) ASSERT_TRUE(store.Set("other", absl::StrCat(i)).ok());
  EXPECT_TRUE(store.TakeCompleted().empty());

  for (WaiterId i = 1; i <= kWaits / 4; ++i) ASSERT_TRUE(store.CancelWait(i));
  store.Tick(TimePoint(std::chrono::milliseconds(kWaits / 2)));
  EXPECT_EQ(store.TakeCompleted().size(), kWaits / 4);
  ASSERT_TRUE(store.Set("late", "").ok());
  EXPECT_EQ(store.TakeCompleted().size(), kWaits / 2);
  EXPECT_EQ(store.NumWaits(), 0u);
}

// Would time out if an arrival cost time for each parked wait.
TEST(KeyValueStoreTest, HundredThousandMeetAtOneBarrier) {
  KeyValueStore store;
  constexpr std::int64_t kSize = 100'000;
  for (std::int64_t i = 1; i < kSize; ++i) {
    const auto waiter = store.Barrier("meet", kSize);
    ASSERT_TRUE(waiter.ok()) << waiter.status();
    ASSERT_TRUE(waiter->has_value());
  }
  EXPECT_TRUE(store.TakeCompleted().empty());
  const auto last = store.Barrier("meet", kSize);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(*last, std::nullopt);
  EXPECT_EQ(store.TakeCompleted().size(), kSize - 1);
  EXPECT_EQ(store.NumWaits(), 0u);
}

// One user of a daemon took all of its memory, with a thousand jobs of 64 MiB each.
TEST(KeyValueStoreTest, StoresHaveTheirBytesTogether) {
  constexpr std::size_t kBeside = KeyValueStore::kBytesBesideKey;
  ByteBudget budget(2 * (1 + kBeside) + 10);
  KeyValueStore mine({}, &budget);
  const std::string five(5, 'v');
  ASSERT_TRUE(mine.Set("k", five).ok());
  {
    KeyValueStore theirs({}, &budget);
    ASSERT_TRUE(theirs.Set("k", five).ok());
    EXPECT_EQ(budget.taken(), budget.most());
    EXPECT_EQ(Shown(mine.Append("k", "v")),
              "RESOURCE_EXHAUSTED: append to 'k': bytes of all jobs' keys and values would be 205, "
              "the limit is 204");
    EXPECT_EQ(Shown(mine.Push("q", "")),
              "RESOURCE_EXHAUSTED: push to 'q': bytes of all jobs' keys and values would be 333, "
              "the limit is 204");
    // A store that shrinks is not refused, whatever the others have.
    EXPECT_TRUE(mine.Set("k", "v").ok());
    EXPECT_TRUE(theirs.Append("k", "more").ok());
    EXPECT_TRUE(mine.Delete("k"));
    EXPECT_EQ(budget.taken(), 1 + kBeside + 9);
    EXPECT_TRUE(theirs.Delete("k"));
    EXPECT_TRUE(theirs.Push("k", "").ok());
    EXPECT_EQ(budget.taken(), theirs.TotalBytes() + kBeside);
    EXPECT_EQ(theirs.Pop("k").length, 1u);
    EXPECT_TRUE(theirs.Set("k", five).ok());
  }
  EXPECT_EQ(budget.taken(), 0u) << "a store that ends gives back what it had";
  EXPECT_TRUE(mine.Set("k", five).ok());
}

// Would time out if an arrival, a departure or the end of a meeting cost time for each caller
// present.
TEST(KeyValueStoreTest, HundredThousandComeAndGoAtOneMeeting) {
  KeyValueStore store;
  constexpr std::uint64_t kCount = 100'000;
  const auto meet = [&] { return store.Meet({.name = "meet", .count = kCount, .caller = ""}); };
  for (std::uint64_t i = 1; i < kCount; ++i) ASSERT_TRUE(meet()->has_value());
  for (WaiterId i = 1; i < kCount; i += 2) ASSERT_TRUE(store.CancelWait(i));
  for (WaiterId i = 1; i < kCount; i += 2) ASSERT_TRUE(meet()->has_value());
  EXPECT_TRUE(store.TakeCompleted().empty());
  EXPECT_EQ(*meet(), std::nullopt);
  EXPECT_EQ(store.TakeCompleted().size(), kCount - 1);
  EXPECT_EQ(store.NumWaits(), 0u);
}

}  // namespace
}  // namespace muster::rendezvous
