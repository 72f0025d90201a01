// What a journal remembers, handed to a Driver a part at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rendezvous/fronts/driver.h"
#include "rendezvous/journal/journal.h"

namespace muster::rendezvous {

// A store may have millions of entries, and whoever leads has to say so several times a second. So
// each call takes some ten milliseconds at most, and what has been handed over is freed with it.
class Restoration {
 public:
  // The Driver must outlive it, and nothing else may be asked of that before the last call.
  Restoration(Driver& driver, JournalContents contents);

  // Hands over the next part; true: there is more. DataLoss when something is not the record of a
  // job.
  absl::StatusOr<bool> Go();

  // Makes all these calls, and then calls `done` with how that ended: at once or, with `later`,
  // which calls a function in a later turn of the loop, each in a turn of its own.
  using Later = std::function<void(std::function<void()>)>;
  static void Complete(std::shared_ptr<Restoration> restoration, const Later& later,
                       std::function<void(const absl::Status&)> done);

 private:
  absl::Status RestoreJob(const std::string& run_id, const std::string& bytes);

  Driver& driver_;
  JournalContents contents_;
  std::size_t next_job_ = 0;
  std::size_t next_entry_ = 0;
};

}  // namespace muster::rendezvous
