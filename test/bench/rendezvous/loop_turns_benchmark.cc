// What it costs to measure how long handlers hold a loop: beside the loop that is not measured.
#include <sys/socket.h>

#include <array>
#include <functional>

#include <benchmark/benchmark.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "rendezvous/server/daemon_pages.h"

namespace muster::rendezvous {
namespace {

constexpr int kHandlers = 10'000;

void Run(boost::asio::io_context& io, LoopTurns& turns, bool measured) {
  io.restart();
  if (measured) {
    turns.Run(io);
  } else {
    io.run();
  }
}

// Handlers that are ready when the one before returns: each posts the next.
void Posted(benchmark::State& state) {
  boost::asio::io_context io(1);
  LoopTurns turns;
  for (auto _ : state) {
    int left = kHandlers;
    const std::function<void()> next = [&] {
      if (--left > 0) boost::asio::post(io, next);
    };
    boost::asio::post(io, next);
    Run(io, turns, state.range(0) != 0);
  }
  state.SetItemsProcessed(state.iterations() * kHandlers);
}

// A byte goes to and fro over a pair of sockets: each handler comes after the kernel was asked.
void Awaited(benchmark::State& state) {
  using Socket = boost::asio::local::stream_protocol::socket;
  boost::asio::io_context io(1);
  LoopTurns turns;
  Socket a(io), b(io);
  boost::asio::local::connect_pair(a, b);
  std::array<char, 1> byte{};
  for (auto _ : state) {
    int left = kHandlers;
    const std::function<void(Socket&, Socket&)> serve = [&](Socket& from, Socket& to) {
      boost::asio::async_read(from, boost::asio::buffer(byte),
                              [&](const boost::system::error_code&, std::size_t) {
                                if (--left <= 0) return;
                                serve(to, from);
                                boost::asio::write(from, boost::asio::buffer(byte));
                              });
    };
    serve(b, a);
    boost::asio::write(a, boost::asio::buffer(byte));
    Run(io, turns, state.range(0) != 0);
  }
  state.SetItemsProcessed(state.iterations() * kHandlers);
}

BENCHMARK(Posted)->ArgName("measured")->Arg(0)->Arg(1);
BENCHMARK(Awaited)->ArgName("measured")->Arg(0)->Arg(1);

}  // namespace
}  // namespace muster::rendezvous

BENCHMARK_MAIN();
