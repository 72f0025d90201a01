// A small batch is encoded at once; a job with hundreds of nodes on another thread.
#include "rendezvous/fronts/daemon_loop.h"

#include <optional>
#include <utility>

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

#include "absl/strings/str_cat.h"
#include "rendezvous/wire/wire.h"

namespace muster::rendezvous {
namespace {

Batch BatchOf(int nodes) {
  JobRecord record{.run_id = "job"};
  for (int i = 1; i <= nodes; ++i) {
    record.attendees.push_back(
        {.id = static_cast<AttendeeId>(i), .node = NodeInfo{.node_id = absl::StrCat("node-", i)}});
  }
  Batch batch;
  batch.jobs.push_back({"job", std::move(record)});
  batch.jobs.push_back({"forgotten", std::nullopt});
  batch.entries.push_back({"job", "key", "value"});
  batch.entries.push_back({"job", "deleted", std::nullopt});
  return batch;
}

void ExpectWhole(const JournalBatch& bytes, std::size_t nodes) {
  ASSERT_EQ(bytes.jobs.size(), 2u);
  EXPECT_EQ(bytes.jobs[0].run_id, "job");
  const absl::StatusOr<JobRecord> record = RecordFromBytes(bytes.jobs[0].record.value());
  ASSERT_TRUE(record.ok()) << record.status();
  ASSERT_EQ(record->attendees.size(), nodes);
  EXPECT_EQ(record->attendees.back().node->node_id, absl::StrCat("node-", nodes));
  EXPECT_GT(record->history.true_at_ms, 0);
  EXPECT_EQ(bytes.jobs[1].record, std::nullopt);
  ASSERT_EQ(bytes.entries.size(), 2u);
  EXPECT_EQ(bytes.entries[0].value, "value");
  EXPECT_EQ(bytes.entries[1].value, std::nullopt);
}

TEST(BatchEncoderTest, SmallBatchIsThereAtOnce) {
  boost::asio::io_context io(1);
  BatchEncoder encoder(io);
  std::optional<JournalBatch> bytes;
  encoder.Encode(BatchOf(2), [&](JournalBatch made) { bytes = std::move(made); });
  ASSERT_TRUE(bytes);
  ExpectWhole(*bytes, 2);
}

TEST(BatchEncoderTest, LargeBatchComesFromTheLoop) {
  boost::asio::io_context io(1);
  BatchEncoder encoder(io);
  for (int i = 0; i < 2; ++i) {
    std::optional<JournalBatch> bytes;
    encoder.Encode(BatchOf(1000), [&](JournalBatch made) { bytes = std::move(made); });
    EXPECT_FALSE(bytes);
    // The loop has work until the result is there.
    io.restart();
    io.run();
    ASSERT_TRUE(bytes);
    ExpectWhole(*bytes, 1000);
  }
}

TEST(BatchEncoderTest, NothingIsHeardAfterItsEnd) {
  boost::asio::io_context io(1);
  bool heard = false;
  {
    BatchEncoder encoder(io);
    encoder.Encode(BatchOf(1000), [&](JournalBatch) { heard = true; });
  }
  io.run();
  EXPECT_FALSE(heard);
}

}  // namespace
}  // namespace muster::rendezvous
