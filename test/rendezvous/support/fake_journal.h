// A journal whose answers come from the test.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "rendezvous/journal/journal.h"

namespace muster::rendezvous {

// Holds each batch until the test says how the commit ended.
class FakeJournal final : public Journal {
 public:
  void Commit(JournalBatch batch, std::function<void(absl::Status)> done) override {
    batches.push_back(std::move(batch));
    done_ = std::move(done);
  }
  bool busy() const { return done_ != nullptr; }
  void End(const absl::Status& status) { std::exchange(done_, nullptr)(status); }

  std::vector<JournalBatch> batches;

 private:
  std::function<void(absl::Status)> done_;
};

}  // namespace muster::rendezvous
