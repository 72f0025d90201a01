// Waiting on the loop of a load generator.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "test/support/run_until.h"

namespace muster::rendezvous::bench {

// Runs the loop until `condition` holds; ends the process if it does not in time.
template <typename Condition>
void Await(boost::asio::io_context& io, const char* what, Condition condition,
           std::chrono::minutes patience = std::chrono::minutes(1)) {
  if (test::RunUntil(io, condition, patience)) return;
  std::fprintf(stderr, "load generator: %s: not within %ld min\n", what,
               static_cast<long>(patience.count()));
  std::exit(1);
}

// Runs the loop for `time`.
inline void RunFor(boost::asio::io_context& io, std::chrono::duration<double> time) {
  bool over = false;
  boost::asio::steady_timer timer(
      io, std::chrono::duration_cast<std::chrono::steady_clock::duration>(time));
  timer.async_wait([&over](const boost::system::error_code&) { over = true; });
  io.restart();
  while (!over) io.run_one();
}

}  // namespace muster::rendezvous::bench
