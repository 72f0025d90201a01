// A long history of distinguishable batches, to find out which of them a journal contains.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "rendezvous/journal/journal.h"

namespace muster::rendezvous::test {

// The expected contents of a journal, as comparable values.
struct Remembered {
  std::map<std::string, std::string> jobs;
  std::map<std::pair<std::string, std::string>, std::string> entries;  // by run id and key

  friend bool operator==(const Remembered&, const Remembered&) = default;

  void Apply(const JournalBatch& batch);
};

Remembered From(const JournalContents& contents);

// Batch `number`, counted from 1; always the same for the same number. It sets, deletes and forgets
// jobs and entries of all sizes, a few KiB in total, and contains its number.
JournalBatch BatchNumber(int number);

// The number of batches, applied in order, that gives exactly these contents. nullopt if there is
// none, because part of a batch or a whole one is missing.
std::optional<int> BatchesIn(const JournalContents& contents);

}  // namespace muster::rendezvous::test
