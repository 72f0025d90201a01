// What a batch of the journal becomes in etcd, and what is read back of it.
#include "rendezvous/etcd/journal_keys.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::rendezvous::etcd {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

const JournalKeys kKeys("/root");

std::vector<std::string> KeysOf(const std::vector<Operation>& operations) {
  std::vector<std::string> keys;
  for (const Operation& operation : operations) {
    if (const auto* put = std::get_if<Put>(&operation)) keys.push_back(put->key);
    if (const auto* gone = std::get_if<Delete>(&operation)) keys.push_back("- " + gone->key);
  }
  return keys;
}

TEST(JournalKeysTest, NamesOfAnyBytesAreReadBack) {
  for (const std::string name : {"job", "a/b", "", "%", "%41", "..", "\n", "\xff\x00 z", "Ö"}) {
    const std::string job = kKeys.Job(name);
    EXPECT_EQ(kKeys.RunIdOf(job), name);
    for (const char c : job) EXPECT_TRUE(c > ' ' && c < 0x7f) << job;
    const auto entry = kKeys.EntryOf(kKeys.Entry(name, "key/" + name));
    ASSERT_TRUE(entry.has_value());
    EXPECT_EQ(*entry, std::pair(name, "key/" + name));
  }
}

TEST(JournalKeysTest, NoJobLiesInAnother) {
  const Range range = kKeys.EntriesOf("a");
  for (const char* other : {"a/b", "ab", "", "A", "b"}) {
    const std::string key = kKeys.Entry(other, "k") + "/0000";
    EXPECT_FALSE(range.key <= key && key < range.end) << other;
  }
}

TEST(ChunksTest, ValuesOfAnySizeAreReadBack) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, kChunkBytes, kChunkBytes + 1, 3 * kChunkBytes}) {
    const std::string value(size, 'x');
    ChunkReader reader;
    std::optional<ChunkReader::Value> read;
    for (const Put& put : ToChunks("/place", value)) {
      EXPECT_FALSE(read.has_value());
      auto taken = reader.Take({.key = put.key, .value = put.value});
      ASSERT_TRUE(taken.ok()) << taken.status();
      read = *std::move(taken);
    }
    ASSERT_TRUE(read.has_value()) << size;
    EXPECT_EQ(read->bytes, value);
    EXPECT_EQ(read->place, "/place");
    EXPECT_TRUE(reader.End().ok());
  }
}

TEST(ChunksTest, DamageIsNoticed) {
  const std::vector<Put> chunks = ToChunks("/place", std::string(2 * kChunkBytes, 'x'));
  ASSERT_THAT(chunks, SizeIs(2));
  const auto read = [](std::vector<KeyValue> keys) {
    ChunkReader reader;
    for (KeyValue& key : keys) {
      if (auto taken = reader.Take(key); !taken.ok()) return taken.status();
    }
    return reader.End();
  };
  const KeyValue one{.key = chunks[0].key, .value = chunks[0].value};
  const KeyValue two{.key = chunks[1].key, .value = chunks[1].value};
  EXPECT_TRUE(read({one, two}).ok());
  KeyValue changed = two;
  changed.value[5] = 'y';
  KeyValue moved_one{.key = "/other/0000", .value = one.value};
  KeyValue moved_two{.key = "/other/0001", .value = two.value};
  KeyValue none = one;
  none.value = std::string(8, '\0');
  for (const auto& keys : std::vector<std::vector<KeyValue>>{{one},
                                                             {two},
                                                             {one, one},
                                                             {one, changed},
                                                             {moved_one, moved_two},
                                                             {none},
                                                             {{.key = "x", .value = "y"}}}) {
    EXPECT_TRUE(absl::IsDataLoss(read(keys)));
  }
}

TEST(BatchPlanTest, SmallBatchIsOneTransaction) {
  LargeValues large;
  const auto plan = PlanBatch({.jobs = {{"j", "record"}, {"gone", std::nullopt}},
                               .entries = {{"j", "k", "v"}, {"j", "d", std::nullopt}}},
                              kKeys, large);
  ASSERT_THAT(plan, SizeIs(1));
  EXPECT_EQ(KeysOf(plan[0]), (std::vector<std::string>{
                                 "/root/jobs/j/0000", "- /root/jobs/gone/", "- /root/store/gone/",
                                 "/root/store/j/k/0000", "- /root/store/j/d/"}));
}

// Etcd refuses a transaction that changes a key twice.
TEST(BatchPlanTest, JobThatIsForgottenAndBegunAgainTakesTwo) {
  LargeValues large;
  const auto plan = PlanBatch(
      {.jobs = {{"j", std::nullopt}, {"j", "record"}}, .entries = {{"j", "k", "v"}}}, kKeys, large);
  ASSERT_THAT(plan, SizeIs(2));
  EXPECT_EQ(KeysOf(plan[1]),
            (std::vector<std::string>{"/root/jobs/j/0000", "/root/store/j/k/0000"}));
}

TEST(BatchPlanTest, NoTransactionIsTooLargeForEtcd) {
  JournalBatch batch;
  for (int i = 0; i < 1000; ++i) batch.entries.push_back({"j", std::to_string(i), "v"});
  for (int i = 0; i < 10; ++i) {
    batch.entries.push_back({"j", "large " + std::to_string(i), std::string(700'000, 'x')});
  }
  LargeValues large;
  for (const auto& transaction : PlanBatch(batch, kKeys, large)) {
    EXPECT_LE(transaction.size(), kMostOperations);
    std::size_t bytes = 0;
    for (const Operation& operation : transaction) bytes += std::get<Put>(operation).value.size();
    EXPECT_LE(bytes, kMostBytes);
  }
  EXPECT_THAT(large, SizeIs(10));
}

TEST(BatchPlanTest, ValueThatBecomesShorterLeavesNoChunks) {
  LargeValues large;
  PlanBatch({.entries = {{"j", "k", std::string(3 * kChunkBytes, 'x')}}}, kKeys, large);
  const auto plan = PlanBatch({.entries = {{"j", "k", "v"}}}, kKeys, large);
  ASSERT_THAT(plan, SizeIs(1));
  EXPECT_EQ(KeysOf(plan[0]),
            (std::vector<std::string>{"- /root/store/j/k/0001", "/root/store/j/k/0000"}));
  EXPECT_TRUE(large.empty());
}

TEST(BatchPlanTest, StagedBatchIsReadBack) {
  const JournalBatch batch{
      .jobs = {{"j", std::string("\0r", 2)}, {"gone", std::nullopt}, {"empty", ""}},
      .entries = {{"j", "k", "v"}, {"j", "", ""}, {"j", "d", std::nullopt}}};
  const auto read = FromStaged(ToStaged(batch));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToStaged(*read), ToStaged(batch));
  ASSERT_THAT(read->jobs, SizeIs(3));
  EXPECT_EQ(read->jobs[0].record, batch.jobs[0].record);
  EXPECT_EQ(read->jobs[1].record, std::nullopt);
  EXPECT_EQ(read->jobs[2].record, "");
  EXPECT_EQ(read->entries[2].value, std::nullopt);
  EXPECT_THAT(std::string(FromStaged("\x0f").status().message()), HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace muster::rendezvous::etcd
