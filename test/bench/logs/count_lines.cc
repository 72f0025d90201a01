// count_lines FILE...: prints the number of numbered lines in the files, as a JSON object.
#include <cstdio>
#include <vector>

#include "test/bench/logs/numbered_line.h"

int main(int argc, char** argv) {
  std::uint64_t lines = 0;
  std::uint64_t others = 0;
  std::vector<char> buffer(256 * 1024);
  for (int i = 1; i < argc; ++i) {
    std::FILE* const file = std::fopen(argv[i], "rb");
    if (file == nullptr) {
      std::perror(argv[i]);
      return 1;
    }
    muster::bench::LineCounter counter;
    while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), file)) {
      counter.Feed({buffer.data(), count});
    }
    std::fclose(file);
    lines += counter.lines();
    others += counter.others();
  }
  std::printf("{\"lines\": %llu, \"others\": %llu}\n", static_cast<unsigned long long>(lines),
              static_cast<unsigned long long>(others));
  return 0;
}
