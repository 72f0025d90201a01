// Where in etcd a journal is, and what its values are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "rendezvous/etcd/etcd.h"
#include "rendezvous/journal/journal.h"

namespace muster::rendezvous::etcd {

// How the key of each journal's SequencedWriter ends; no other key does.
inline constexpr char kSequenceName[] = "/sequence";

// Under the journal's root:
//
//   format              "1"
//   incarnation         which start of a daemon on this journal was the last
//   sequence            which transaction was the last (SequencedWriter)
//   jobs/ID/CHUNK       the record of a job
//   store/ID/KEY/CHUNK  an entry of its store
//   staged              how many parts there are of a batch that was committed and is not yet taken
//                       over; absent when there is none
//   parts/CHUNK         the parts of such a batch, or of one that was never committed
//
// ID and KEY are written with %XX for all but letters, digits, '.', '_' and '-', so that `etcdctl
// get --prefix` shows what is there. CHUNK counts from 0000: etcd takes no request of more than
// 1.5 MiB unless told otherwise, so what is large lies in several values. The first begins with the
// number of chunks and the CRC-32 of everything: of the columns, each with its length, as in a
// journal on disk.
class JournalKeys {
 public:
  explicit JournalKeys(std::string root) : root_(std::move(root)) {}

  std::string format() const { return root_ + "/format"; }
  std::string incarnation() const { return root_ + "/incarnation"; }
  std::string sequence() const { return root_ + kSequenceName; }
  std::string staged() const { return root_ + "/staged"; }

  // The place of a value: chunks follow, after a '/'.
  std::string Job(std::string_view run_id) const;
  std::string Entry(std::string_view run_id, std::string_view key) const;
  std::string Batch() const { return root_ + "/parts"; }

  // What lies under a place, as the keys of a Get or Delete.
  static Range Under(const std::string& place) { return {place + "/", place + "0"}; }
  // The journal, those of tenants, and who leads.
  Range Everything() const { return Under(root_); }
  Range Jobs() const { return Under(root_ + "/jobs"); }
  Range Entries() const { return Under(root_ + "/store"); }
  Range EntriesOf(std::string_view run_id) const;

  // The run id, and for an entry its key, of the place (without the chunk). nullopt: it is none.
  std::optional<std::string> RunIdOf(std::string_view place) const;
  std::optional<std::pair<std::string, std::string>> EntryOf(std::string_view place) const;

 private:
  std::string root_;
};

// At most so much of a value is in one chunk.
inline constexpr std::size_t kChunkBytes = 256 << 10;

// How many keys to read at once. For each page etcd looks through all keys of the range that are
// left, so that the time for many pages grows with the square of the keys; and a page must not be
// larger than what is taken of an answer, nor take longer than the patience for one call.
class PageSize {
 public:
  // Keys of a page of which nothing is known: with values of kChunkBytes each it has 8 MiB. Where
  // that is too much (PageReader) there are units of fewer keys, and all pages are so much smaller.
  static constexpr int kUnit = 32;

  // Of the next page.
  int Next(int unit = kUnit);
  // The page had so many, with so many bytes: the next may be larger if they were small.
  void Had(std::size_t keys, std::size_t bytes);
  // The page was too large, as large values came after small ones: the next one is a unit. False:
  // it was no larger.
  bool Shrink();

 private:
  int asked_ = 0;  // of the last page
  bool is_unit_ = true;
  std::optional<std::size_t> each_;  // bytes of a key, on average; nullopt: not known
};

// Puts of the value at the place, one for each chunk. `place` counts for the checksum, so that what
// was moved is noticed.
std::vector<Put> ToChunks(const std::string& place, std::string_view value);

// Puts values together again, from keys in their order.
class ChunkReader {
 public:
  struct Value {
    std::string place;
    std::string bytes{};
    std::size_t chunks = 0;
  };
  // The value that this key completes, if any. DataLoss in words.
  absl::StatusOr<std::optional<Value>> Take(const KeyValue& key);
  // Nothing is left that is not complete.
  absl::Status End() const;

 private:
  Value value_;
  std::size_t expected_ = 0;
  std::uint32_t crc_ = 0;
};

// How a batch of the journal becomes transactions of etcd.

// Etcd takes 128 operations and 1.5 MiB for one request unless it is told otherwise
// (--max-txn-ops, --max-request-bytes).
inline constexpr std::size_t kMostOperations = 100;
inline constexpr std::size_t kMostBytes = 1 << 20;

// How many chunks a value has, by its place; those with one are left out. A value that becomes
// shorter leaves chunks that have to be deleted.
using LargeValues = std::map<std::string, std::size_t>;

// Operations that leave the journal as the batch demands, cut into transactions; done in order,
// also when they are begun again from the first. No key is changed twice in one transaction.
// `large` is brought up to date.
std::vector<std::vector<Operation>> PlanBatch(const JournalBatch& batch, const JournalKeys& keys,
                                              LargeValues& large);

// A batch that needs more than one transaction is put down whole first.
std::string ToStaged(const JournalBatch& batch);
// DataLoss when it is none.
absl::StatusOr<JournalBatch> FromStaged(const std::string& bytes);
// Puts that put it down, cut into transactions.
std::vector<std::vector<Operation>> PlanParts(const std::string& staged, const JournalKeys& keys);

}  // namespace muster::rendezvous::etcd
