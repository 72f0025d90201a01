#include "rendezvous/fronts/journal_writer.h"

#include <time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <spdlog/spdlog.h>
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

namespace {

// Before a batch for which there was no room on the disk is tried again.
constexpr std::chrono::seconds kRest(1);

using std::chrono::microseconds;
using std::chrono::milliseconds;
// From a fast NVMe to a disk that no agent should wait for.
constexpr std::chrono::nanoseconds kCommits[] = {
    microseconds(250),  microseconds(500),   milliseconds(1),   milliseconds(2),
    milliseconds(5),    milliseconds(10),    milliseconds(25),  milliseconds(50),
    milliseconds(100),  milliseconds(250),   milliseconds(500), milliseconds(1000),
    milliseconds(2500), milliseconds(10'000)};

// Of the processor, which does not go on while others have it.
std::chrono::nanoseconds ThreadTime() {
  timespec spent{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
}

}  // namespace

JournalWriter::JournalWriter(boost::asio::io_context& io, DaemonCore& core, Journal& journal,
                             std::function<void()> ended,
                             std::function<void(const absl::Status&)> fatal)
    : io_(io),
      core_(core),
      journal_(journal),
      ended_(std::move(ended)),
      fatal_(std::move(fatal)),
      encoder_(io),
      figures_{.commits = base::DurationHistogram(kCommits)},
      timer_(io) {}

void JournalWriter::Follow() {
  if (state_ != State::kIdle || !core_.NeedsCommit()) return;
  state_ = State::kPosted;
  if (pace_.next() > std::chrono::steady_clock::now()) return WriteAt(pace_.next());
  // After what else is due in this turn of the loop, so that one batch holds it all.
  boost::asio::post(io_, lifetime_.Guard([this] { Write(); }));
}

void JournalWriter::Stop() {
  state_ = State::kStopped;
  timer_.Cancel();
}

void JournalWriter::Write() {
  if (state_ == State::kStopped) return;
  state_ = State::kWriting;
  began_ = std::chrono::steady_clock::now();
  const std::chrono::nanoseconds before = ThreadTime();
  Batch batch = core_.BeginCommit(began_);
  pace_.Made(ThreadTime() - before, std::chrono::steady_clock::now());
  encoder_.Encode(std::move(batch), [this](JournalBatch bytes) {
    if (state_ == State::kStopped) return;
    journal_.Commit(std::move(bytes),
                    lifetime_.Guard([this](const absl::Status& status) { OnWritten(status); }));
  });
}

void JournalWriter::WriteAt(std::chrono::steady_clock::time_point when) {
  timer_.At(when, [this] { Write(); });
}

void JournalWriter::OnWritten(const absl::Status& status) {
  const bool was_full = core_.disk_full();
  if (absl::IsResourceExhausted(status)) {
    ++figures_.failed;
    core_.DiskFull();
    if (!was_full) {
      spdlog::error("{}; calls of stores are refused and new rounds wait until there is space",
                    std::string(status.message()));
    }
    if (state_ == State::kStopped) return;
    state_ = State::kResting;
    WriteAt(std::chrono::steady_clock::now() + kRest);
    return ended_();
  }
  if (!status.ok()) return fatal_(status);
  figures_.commits.Observe(std::chrono::steady_clock::now() - began_);
  core_.Committed();
  if (was_full) spdlog::warn("the journal can be written again");
  if (state_ == State::kStopped) return;
  state_ = State::kIdle;
  ended_();
  Follow();
}

}  // namespace muster::rendezvous
