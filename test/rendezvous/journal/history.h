// A long history of batches that can be told apart: which of them a journal remembers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "rendezvous/journal/journal.h"

namespace muster::rendezvous::test {

// What a journal should remember, as values that compare.
struct Remembered {
  std::map<std::string, std::string> jobs;
  std::map<std::pair<std::string, std::string>, std::string> entries;  // by run id and key

  friend bool operator==(const Remembered&, const Remembered&) = default;

  void Apply(const JournalBatch& batch);
};

Remembered From(const JournalContents& contents);

// The batch that comes after `number` - 1 others, always the same: it sets, deletes and forgets
// jobs and entries of all sizes, a few KiB in all, and names its number.
JournalBatch BatchNumber(int number);

// After how many batches, in their order, a journal remembers just this; nothing when it is no
// such state: a part of a batch is there, or one is missing.
std::optional<int> BatchesIn(const JournalContents& contents);

}  // namespace muster::rendezvous::test
