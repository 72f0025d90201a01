// Puts load on a TCPStore server (c10d's protocol) on this machine, using raw sockets. Prints one
// JSON object.
//
//   store_client pipeline PORT SECONDS         see pipeline.h
//   store_client fan-out PORT CLIENTS TIMES    see fan_out.h
//   store_client replay PORT FILE              see replay.h
//   store_client one-by-one PORT SECONDS BYTES TIMES
//                                              see one_by_one.h
//   store_client hold PORT CLIENTS             connects that many, as c10d's client does, says so,
//                                              and keeps them until its standard input ends
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "test/bench/store/connection.h"
#include "test/bench/store/fan_out.h"
#include "test/bench/store/one_by_one.h"
#include "test/bench/store/pipeline.h"
#include "test/bench/store/replay.h"

namespace {

using muster::bench::Connection;

void Hold(std::uint16_t port, int clients) {
  std::vector<Connection> connections;
  connections.reserve(static_cast<std::size_t>(clients));
  for (int i = 0; i < clients; ++i) {
    connections.emplace_back(port);
    connections.back().Add("init/", 1);
  }
  std::printf("{\"connections\": %d}\n", clients);
  std::fflush(stdout);
  char ignored;
  while (read(STDIN_FILENO, &ignored, 1) > 0) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 3 ? argv[1] : "";
  const auto port = static_cast<std::uint16_t>(argc > 3 ? std::atoi(argv[2]) : 0);
  if (what == "pipeline") {
    muster::bench::MeasurePipelined(port, std::atof(argv[3]));
  } else if (what == "fan-out" && argc > 4) {
    muster::bench::MeasureFanOut(port, std::atoi(argv[3]), std::atoi(argv[4]));
  } else if (what == "one-by-one" && argc > 5) {
    muster::bench::MeasureOneByOne(port, std::atof(argv[3]),
                                   static_cast<std::size_t>(std::atoll(argv[4])),
                                   std::atoi(argv[5]));
  } else if (what == "replay") {
    muster::bench::MeasureReplay(port, argv[3]);
  } else if (what == "hold") {
    Hold(port, std::atoi(argv[3]));
  } else {
    std::fprintf(stderr, "usage: store_client pipeline|fan-out|one-by-one|replay|hold PORT ...\n");
    return 2;
  }
}
