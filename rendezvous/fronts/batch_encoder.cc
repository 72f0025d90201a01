#include "rendezvous/fronts/batch_encoder.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include "rendezvous/wire/record_wire.h"

namespace muster::rendezvous {
namespace {

// A node takes some microseconds.
constexpr std::size_t kManyNodes = 250;

bool IsLarge(const Batch& batch) {
  std::size_t nodes = 0;
  for (const Batch::Job& job : batch.jobs) {
    if (job.record) nodes += job.record->attendees.size();
  }
  return nodes >= kManyNodes;
}

JournalBatch ToJournal(Batch batch) {
  JournalBatch bytes;
  const std::int64_t now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                                  std::chrono::system_clock::now().time_since_epoch())
                                  .count();
  for (Batch::Job& job : batch.jobs) {
    if (job.record) job.record->history.true_at_ms = now_ms;
    bytes.jobs.push_back(
        {job.run_id, job.record ? std::optional(ToBytes(*job.record)) : std::nullopt});
  }
  for (Batch::Entry& entry : batch.entries) {
    bytes.entries.push_back(
        {std::move(entry.run_id), std::move(entry.key), std::move(entry.value)});
  }
  return bytes;
}

}  // namespace

void BatchEncoder::Encode(Batch batch, std::function<void(JournalBatch)> done) {
  if (!IsLarge(batch)) return done(ToJournal(std::move(batch)));
  if (!thread_) thread_.emplace(1);
  auto deliver =
      lifetime_.Guard([done = std::move(done)](JournalBatch bytes) { done(std::move(bytes)); });
  boost::asio::post(*thread_, [&io = io_, goes_on = boost::asio::make_work_guard(io_),
                               batch = std::move(batch), deliver = std::move(deliver)]() mutable {
    boost::asio::post(io, [bytes = ToJournal(std::move(batch)),
                           deliver = std::move(deliver)]() mutable { deliver(std::move(bytes)); });
  });
}

}  // namespace muster::rendezvous
