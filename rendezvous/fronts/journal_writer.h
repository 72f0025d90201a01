// Writes what a DaemonCore has to remember into the journal.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include "absl/status/status.h"

#include "base/async/timer.h"
#include "base/durations.h"
#include "base/lifetime.h"
#include "rendezvous/core/daemon_core.h"
#include "rendezvous/core/durable_outbox.h"
#include "rendezvous/journal/journal.h"

namespace muster::rendezvous {

// Makes a core's batches into a journal's bytes.

// The record of a job of thousands takes tens of milliseconds to become bytes, in which the loop
// would hear nobody; so a thread does it, which is begun when it is first needed. What is quickly
// done is done at once, as a thread would make it slower. Lives on the loop's thread; its end waits
// for what is under way.
class BatchEncoder {
 public:
  explicit BatchEncoder(boost::asio::io_context& io) : io_(io) {}

  // `done` is called with the bytes: from within the call for a small batch, and otherwise from the
  // loop. One batch at a time.
  void Encode(Batch batch, std::function<void(JournalBatch)> done);

 private:
  boost::asio::io_context& io_;
  base::Lifetime lifetime_;
  std::optional<boost::asio::thread_pool> thread_;
};

// One batch at a time. A batch holds everything that has changed in a turn of the loop, or while
// the previous batch was written; of large ones a fifth of the loop's time is spent on at the most
// (CommitPace). Lives on the loop's thread.
//
//   idle --Follow, something to commit--> posted --the loop's turn is over, its time--> writing
//   writing --on disk--> idle     --the disk is full--> resting --a second--> writing
class JournalWriter {
 public:
  // What it has written since it was made.
  struct Figures {
    // From when a batch is made until the loop hears that it is on disk: so long
    // waits who may only be told then.
    base::DurationHistogram commits;
    // Batches for which there was no room on the disk.
    std::uint64_t failed = 0;
  };

  // `ended` is called when a batch is on disk, or found no room there, and the core may have more
  // to tell; `fatal` when it is not known what is on disk; both from the loop. Everything but the
  // journal must outlive the writer; the journal does not call back after the writer's end.
  JournalWriter(boost::asio::io_context& io, DaemonCore& core, Journal& journal,
                std::function<void()> ended, std::function<void(const absl::Status&)> fatal);

  // The core may have something to commit.
  void Follow();
  // Writes nothing more.
  void Stop();

  const Figures& figures() const { return figures_; }
  std::uint64_t bytes() const { return journal_.bytes(); }

 private:
  enum class State { kIdle, kPosted, kWriting, kResting, kStopped };

  void Write();
  void WriteAt(std::chrono::steady_clock::time_point when);
  void OnWritten(const absl::Status& status);

  boost::asio::io_context& io_;
  DaemonCore& core_;
  Journal& journal_;
  const std::function<void()> ended_;
  const std::function<void(const absl::Status&)> fatal_;

  State state_ = State::kIdle;
  std::chrono::steady_clock::time_point began_{};  // to write
  CommitPace pace_;
  BatchEncoder encoder_;
  Figures figures_;
  base::Timer timer_;
  base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous
