// log_writer FOLDER LINES: a worker that writes LINES numbered lines to stdout as fast as it can,
// whole lines with each write(), and then writes FOLDER/RANK.json: when it began and how long it
// took.
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "test/bench/logs/numbered_line.h"

namespace {

// What C's stdio collects before it writes to a pipe.
constexpr std::size_t kBlock = 4096;

// The rank, as torchrun and Muster, or MPI's launchers, tell it.
int Rank() {
  for (const char* const name : {"RANK", "PMI_RANK"}) {
    if (const char* const rank = std::getenv(name)) return std::atoi(rank);
  }
  return -1;
}

bool WriteAll(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  const int rank = Rank();
  if (argc != 3 || rank < 0 || rank >= muster::bench::kMaxRanks) {
    std::fprintf(stderr, "usage: RANK=N log_writer FOLDER LINES\n");
    return 2;
  }
  const std::uint64_t lines = std::strtoull(argv[2], nullptr, 10);
  const auto start = std::chrono::steady_clock::now().time_since_epoch();
  std::string block;
  for (std::uint64_t number = 0; number < lines; ++number) {
    block += muster::bench::NumberedLine(rank, number);
    if (block.size() + muster::bench::kLineBytes <= kBlock && number + 1 < lines) continue;
    if (!WriteAll(block)) return 1;
    block.clear();
  }
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  std::FILE* const report =
      std::fopen((std::string(argv[1]) + "/" + std::to_string(rank) + ".json").c_str(), "w");
  if (report == nullptr) return 1;
  std::fprintf(report, "{\"start_s\": %.9f, \"cpu_s\": %.6f}\n",
               std::chrono::duration<double>(start).count(),
               Seconds(usage.ru_utime) + Seconds(usage.ru_stime));
  return std::fclose(report) == 0 ? 0 : 1;
}
