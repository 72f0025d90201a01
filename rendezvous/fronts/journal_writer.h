// What has changed of the Coordinator's jobs and their stores, on its way into the journal.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/status/status.h"
#include "rendezvous/core/coordinator.h"
#include "rendezvous/journal/journal.h"

namespace muster::rendezvous {

// Remembers names while they change, and reads the values when a batch is made: what changes ten
// times between two commits is written once. Lives on the loop's thread.
class JournalWriter {
 public:
  // Both must outlive the writer, but for the journal: no call of it comes after the writer's end.
  JournalWriter(boost::asio::io_context& io, Coordinator& coordinator, Journal& journal);

  void JobChanged(const std::string& run_id) { changed_.jobs.insert(run_id); }
  // The job is no more, nor is its store. Another of this name may follow.
  void JobForgotten(const std::string& run_id);
  // Keys of the job's store have changed.
  void StoreChanged(const std::string& run_id, std::vector<std::string> keys);

  // Makes all that has changed durable, then calls `done`, from the loop. While the disk is full it
  // tries again every second, with what has changed by then. A status that is not OK is fatal: what
  // is on the disk is not known. One at a time.
  void Commit(std::function<void(const absl::Status&)> done);

  // The disk is full.
  bool full() const { return full_; }

 private:
  // What a batch is made of, by name.
  struct Changes {
    std::set<std::string> forgotten;
    std::set<std::string> jobs;
    std::map<std::string, std::set<std::string>> keys;  // by run id
  };

  JournalBatch TakeBatch(TimePoint now);
  void OnCommitted(const absl::Status& status);

  Coordinator& coordinator_;
  Journal& journal_;
  boost::asio::steady_timer retry_;

  Changes changed_;
  Changes writing_;  // to be written again if the disk is full
  std::function<void(const absl::Status&)> done_;
  bool full_ = false;
  // Handlers that find it gone do nothing.
  std::shared_ptr<void> alive_ = std::make_shared<int>();
};

}  // namespace muster::rendezvous
