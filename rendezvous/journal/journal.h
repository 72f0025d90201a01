// What the daemon remembers across crashes, as opaque bytes: a record for each job, and the entries
// of each job's store.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace muster::rendezvous {

// The changes of one turn of the loop. Atomic.
struct JournalBatch {
  struct Job {
    std::string run_id;
    // nullopt: the job, and every entry of its store, is forgotten.
    std::optional<std::string> record;
  };
  struct Entry {
    std::string run_id;
    std::string key;
    // nullopt: the entry is deleted.
    std::optional<std::string> value;
  };

  // All of `jobs` come before all of `entries`, each in its order: a job that is forgotten and
  // begun again within one turn has exactly the entries of this batch.
  std::vector<Job> jobs;
  std::vector<Entry> entries;
};

// A journal's contents, read at a start.
struct JournalContents {
  // Which start of the daemon on this journal this is, counted from 1.
  std::uint64_t incarnation = 0;
  // The end of the file was cut off: the unacknowledged batch that the last daemon was writing when
  // it crashed or the power failed.
  bool was_torn = false;
  std::vector<std::pair<std::string, std::string>> jobs;  // run id and record, by run id
  std::vector<JournalBatch::Entry> entries;               // each with a value
};

// Belongs to the loop's thread. If clients are answered only after `done`, no answer is ever taken
// back, whenever the daemon dies.
class Journal {
 public:
  virtual ~Journal() = default;

  // Makes the batch durable and then calls `done` from the loop, never within Commit:
  //   OK                  all of it is on disk, safe from a power failure;
  //   ResourceExhausted   the disk, or etcd's quota, is full. The caller may try again, later, with
  //                       this batch or one that also holds what has changed since;
  //   anything else       what is on disk is not known any more. The journal takes nothing more
  //                       (each further Commit ends the same way), and the daemon should end: its
  //                       next start reads what there is.
  // One at a time: a Commit before the last one's `done` aborts the process, one within `done` is
  // allowed. When the journal is destroyed, `done` is not called, and the batch is on disk whole or
  // not at all.
  virtual void Commit(JournalBatch batch, std::function<void(absl::Status)> done) = 0;

  // Its size on disk, as of the last commit; 0 before the first.
  virtual std::uint64_t bytes() const { return 0; }
};

struct OpenedJournal {
  std::unique_ptr<Journal> journal;
  JournalContents contents;
};

// The checksum by which a journal detects damaged contents.

// CRC-32 (zlib's) of the columns. Each is prefixed with its length, as 8 bytes in this machine's
// order, so that bytes cannot move between columns undetected.
std::uint32_t Checksum(std::initializer_list<std::string_view> columns);

}  // namespace muster::rendezvous
