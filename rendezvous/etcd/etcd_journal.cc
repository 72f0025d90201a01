#include "rendezvous/etcd/etcd_journal.h"

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/lifetime.h"
#include "rendezvous/etcd/journal_keys.h"

namespace muster::rendezvous::etcd {
namespace {

constexpr char kFormat[] = "1";
// Etcd keeps what every key ever was until it is told to forget: so much is written before.
constexpr std::size_t kBytesBetweenCompactions = 64 << 20;
// Of a transaction at most, beside keys and values: its conditions, and some 16 bytes for each
// operation.
constexpr std::size_t kBytesBeside = 8 << 10;

std::size_t SizeOf(const std::vector<Operation>& operations) {
  std::size_t size = 0;
  for (const Operation& operation : operations) {
    if (const auto* put = std::get_if<Put>(&operation)) size += put->key.size() + put->value.size();
  }
  return size;
}

// Transactions of a leader, one after the other.
class Series {
 public:
  explicit Series(SequencedWriter& writer) : writer_(writer) {}

  void Begin(std::vector<std::vector<Operation>> transactions) {
    left_.assign(std::make_move_iterator(transactions.begin()),
                 std::make_move_iterator(transactions.end()));
  }
  void Add(std::vector<Operation> operations) { left_.push_back(std::move(operations)); }
  bool empty() const { return left_.empty(); }
  void Clear() { left_.clear(); }

  // Calls `done` once, with the first error or after the last. After ResourceExhausted another Go
  // goes on from there.
  void Go(std::function<void(absl::Status)> done) {
    done_ = std::move(done);
    Next();
  }

 private:
  void Next() {
    if (left_.empty()) return std::exchange(done_, nullptr)(absl::OkStatus());
    writer_.Write(left_.front(), [this](const absl::Status& status) {
      if (!status.ok()) return std::exchange(done_, nullptr)(status);
      left_.pop_front();
      Next();
    });
  }

  SequencedWriter& writer_;
  std::deque<std::vector<Operation>> left_;
  std::function<void(absl::Status)> done_;
};

std::vector<Operation> EndOfStaged(const JournalKeys& keys) {
  Range parts = JournalKeys::Under(keys.Batch());
  return {Delete{keys.staged()}, Delete{std::move(parts.key), std::move(parts.end)}};
}

class EtcdJournal final : public Journal {
 public:
  EtcdJournal(Etcd& etcd, Fence fence, std::string root)
      : etcd_(etcd), fence_(std::move(fence)), keys_(std::move(root)) {}

  // Opening.

  using Opened = std::function<void(absl::StatusOr<JournalContents>)>;
  void Open(JournalSource& source, Opened opened) {
    source_ = &source;
    opened_ = std::move(opened);
    source.Look({keys_.format(), keys_.incarnation(), keys_.sequence(), keys_.staged()},
                lifetime_.Guard([this](const absl::StatusOr<JournalSource::Values>& head) {
                  if (!head.ok()) return FailToOpen(head.status());
                  LookAtHead((*head)[0], (*head)[1], (*head)[2], (*head)[3]);
                }));
  }

  // Journal.

  void Commit(JournalBatch batch, std::function<void(absl::Status)> done) override {
    if (std::exchange(is_busy_, true)) std::abort();
    batch_ = std::move(batch);
    done_ = std::move(done);
    if (!takes_over_) Proceed();
  }

  std::uint64_t bytes() const override { return 0; }

 private:
  void FailToOpen(const absl::Status& status) { std::exchange(opened_, nullptr)(status); }

  using Value = std::optional<std::string>;
  void LookAtHead(const Value& format, const Value& last, const Value& sequence,
                  const Value& staged) {
    if (format && *format != kFormat) {
      return FailToOpen(absl::FailedPreconditionError(absl::StrCat(
          "the journal in etcd has format ", *format, ", and this version of Muster knows format ",
          kFormat, ": start the version that wrote it, or name another path in etcd")));
    }
    if (last && !absl::SimpleAtoi(*last, &contents_.incarnation)) {
      return FailToOpen(absl::DataLossError("the last incarnation in etcd is not a number"));
    }
    ++contents_.incarnation;
    writer_.emplace(etcd_, fence_, keys_.sequence(),
                    SequencedWriter::Last{sequence.has_value(), sequence.value_or("")});
    if (staged) return ReadParts(JournalKeys::Under(keys_.Batch()));
    CountStart();
  }

  // Reads the range and hands in each value.
  void ReadValues(Range range, std::function<absl::Status(ChunkReader::Value)> take,
                  std::function<void()> then) {
    source_->HandOver(
        std::move(range),
        [this, watch = lifetime_.watch(), take = std::move(take)](const KeyValue& key) {
          if (watch.over()) return absl::CancelledError();
          auto value = reader_.Take(key);
          if (value.ok() && *value) return take(**std::move(value));
          return value.status();
        },
        lifetime_.Guard([this, then = std::move(then)](absl::Status status) {
          if (status.ok()) status = reader_.End();
          if (!status.ok()) return FailToOpen(status);
          then();
        }));
  }

  void ReadParts(const Range& range) {
    ReadValues(
        range,
        [this](const ChunkReader::Value& value) {
          auto batch = FromStaged(value.bytes);
          if (!batch.ok()) return batch.status();
          batch_ = *std::move(batch);
          return absl::OkStatus();
        },
        [this] {
          if (!batch_) return FailToOpen(absl::DataLossError("a batch in etcd has no parts"));
          Complete(*std::exchange(batch_, std::nullopt));
        });
  }

  // Takes over into the journal what the last leader had committed.
  void Complete(const JournalBatch& batch) {
    // Which of its places had more chunks than they get is not known yet: all are cleared.
    LargeValues any;
    for (const JournalBatch::Job& job : batch.jobs) any[keys_.Job(job.run_id)] = kAny;
    for (const JournalBatch::Entry& e : batch.entries) any[keys_.Entry(e.run_id, e.key)] = kAny;
    std::vector<std::vector<Operation>> plan = PlanBatch(batch, keys_, any);
    plan.push_back(EndOfStaged(keys_));
    for (const std::vector<Operation>& each : plan) source_->Expect(each);
    series_.emplace(*writer_);
    series_->Begin(std::move(plan));
    series_->Go(lifetime_.Guard([this](const absl::Status& status) {
      if (!status.ok()) return FailToOpen(status);
      CountStart();
    }));
  }

  void CountStart() {
    // Parts of a batch that was never committed mean nothing.
    Range parts = JournalKeys::Under(keys_.Batch());
    writer_->Write({Put{keys_.format(), kFormat},
                    Put{keys_.incarnation(), absl::StrCat(contents_.incarnation)},
                    Delete{std::move(parts.key), std::move(parts.end)}},
                   [this](const absl::Status& status) {
                     if (!status.ok()) return FailToOpen(status);
                     ReadJobs();
                   });
  }

  void Know(const ChunkReader::Value& value) {
    if (value.chunks > 1) large_[value.place] = value.chunks;
  }

  void ReadJobs() {
    ReadValues(
        keys_.Jobs(),
        [this](ChunkReader::Value value) {
          Know(value);
          auto run_id = keys_.RunIdOf(value.place);
          if (!run_id)
            return absl::DataLossError(absl::StrCat(value.place, " does not belong to a job"));
          contents_.jobs.emplace_back(*std::move(run_id), std::move(value.bytes));
          return absl::OkStatus();
        },
        [this] { ReadEntries(); });
  }

  void ReadEntries() {
    ReadValues(
        keys_.Entries(),
        [this](ChunkReader::Value value) {
          Know(value);
          auto entry = keys_.EntryOf(value.place);
          if (!entry)
            return absl::DataLossError(absl::StrCat(value.place, " does not belong to an entry"));
          contents_.entries.push_back(
              {std::move(entry->first), std::move(entry->second), std::move(value.bytes)});
          return absl::OkStatus();
        },
        [this] {
          source_ = nullptr;
          series_.emplace(*writer_);
          std::exchange(opened_, nullptr)(std::move(contents_));
        });
  }

  // Writes the batch that waits. What a former one has left to be taken over comes first; if there
  // is no space for that, there is none for this one either.
  void Proceed() {
    if (!series_->empty()) return TakeOver();
    LargeValues large = large_;
    std::vector<std::vector<Operation>> plan = PlanBatch(*batch_, keys_, large);
    if (plan.empty()) return Finish(absl::OkStatus());
    if (plan.size() == 1 && !may_be_staged_) {
      written_ += SizeOf(plan[0]);
      return writer_->Write(std::move(plan[0]),
                            [this, large = std::move(large)](const absl::Status& status) mutable {
                              if (status.ok()) large_ = std::move(large);
                              Finish(status);
                            });
    }
    const std::string staged = ToStaged(*batch_);
    written_ += 2 * staged.size();
    std::vector<std::vector<Operation>> steps = PlanParts(staged, keys_);
    // What is left of one for which there was no space may have been longer, and as its answer may
    // have been lost, it may even count; this one holds all that it held.
    steps.insert(steps.begin(), EndOfStaged(keys_));
    steps.push_back({Put{keys_.staged(), "1"}});
    series_->Begin(std::move(steps));
    series_->Go(lifetime_.Guard([this, plan = std::move(plan),
                                 large = std::move(large)](const absl::Status& status) mutable {
      may_be_staged_ = !status.ok();
      if (!status.ok()) {
        series_->Clear();
        return Finish(status);
      }
      // It counts now.
      large_ = std::move(large);
      series_->Begin(std::move(plan));
      series_->Add(EndOfStaged(keys_));
      takes_over_ = true;
      const base::Lifetime::Watch watch = lifetime_.watch();
      Finish(absl::OkStatus());
      if (!watch.over()) TakeOver();
    }));
  }

  void TakeOver() {
    takes_over_ = true;
    series_->Go(lifetime_.Guard([this](const absl::Status& status) {
      takes_over_ = false;
      // The next batch goes on with it, and hears whatever is in the way.
      if (!status.ok() && !absl::IsResourceExhausted(status)) broken_ = status;
      if (!is_busy_) return;
      if (!status.ok()) return Finish(status);
      Proceed();
    }));
  }

  void Finish(absl::Status status) {
    if (status.ok() && !broken_.ok()) status = broken_;
    if (written_ > kBytesBetweenCompactions && writer_->revision() > 0) {
      written_ = 0;
      etcd_.Compact(writer_->revision());
    }
    is_busy_ = false;
    batch_.reset();
    std::exchange(done_, nullptr)(std::move(status));
  }

  // More chunks than a value can have had.
  static constexpr std::size_t kAny = 0xffff;

  Etcd& etcd_;
  const Fence fence_;
  const JournalKeys keys_;

  JournalSource* source_ = nullptr;  // until it is open
  Opened opened_;
  JournalContents contents_;
  ChunkReader reader_;

  std::optional<SequencedWriter> writer_;
  LargeValues large_;
  std::optional<Series> series_;  // what is left of a large batch
  bool takes_over_ = false;       // a transaction of it is under way, after the commit
  bool may_be_staged_ = false;    // one that failed may be there, and count
  absl::Status broken_;
  std::size_t written_ = 0;  // since the last compaction

  bool is_busy_ = false;
  std::optional<JournalBatch> batch_;
  std::function<void(absl::Status)> done_;
  const base::Lifetime lifetime_;
};

}  // namespace

void CheckEtcdTakesBatches(Etcd& etcd, const std::string& root,
                           std::function<void(absl::Status)> done) {
  const JournalKeys keys(root);
  // SequencedWriter adds one.
  const std::vector<Operation> reads(kMostOperations + 1, Get{keys.format(), "", 1});
  etcd.Transact({.then = reads}, [&etcd, keys,
                                  done = std::move(done)](const absl::StatusOr<Outcome>& outcome) {
    if (!outcome.ok()) return done(outcome.status());
    // Etcd measures only what may write. This never does: there is no such value, nor such a key.
    // The bytes are in the condition, as those of a Put would count against etcd's quota.
    etcd.Transact(
        {.conditions = {HasValue{keys.format(), std::string(kMostBytes + kBytesBeside, ' ')}},
         .then = {Delete{keys.Batch()}}},
        [done](const absl::StatusOr<Outcome>& written) { done(written.status()); });
  });
}

void OpenEtcdJournal(Etcd& etcd, Fence fence, std::string root, JournalSource& source,
                     std::function<void(absl::StatusOr<OpenedJournal>)> done) {
  // It owns itself until it is open.
  auto journal = std::make_shared<std::unique_ptr<EtcdJournal>>(
      std::make_unique<EtcdJournal>(etcd, std::move(fence), std::move(root)));
  (*journal)->Open(source,
                   [journal, done = std::move(done)](absl::StatusOr<JournalContents> contents) {
                     if (!contents.ok()) return done(contents.status());
                     done(OpenedJournal{std::move(*journal), *std::move(contents)});
                   });
}

}  // namespace muster::rendezvous::etcd
