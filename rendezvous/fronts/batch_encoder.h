// Makes a core's batches into a journal's bytes.
#pragma once

#include <functional>
#include <optional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include "base/lifetime.h"
#include "rendezvous/core/daemon_core.h"
#include "rendezvous/journal/journal.h"

namespace muster::rendezvous {

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

}  // namespace muster::rendezvous
