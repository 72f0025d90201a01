// 64 workers that write as fast as they can, with --tee: nothing is lost, lines stay intact, and
// the agent's memory stays small.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"

namespace muster::test {
namespace {

constexpr int kWorkers = 64;
constexpr int kLinesPerWorker = 2500;

class LogFloodTest : public E2eTest {
 protected:
  // The agent's largest size so far.
  static long PeakMemoryKib(pid_t pid) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    std::string word;
    while (status >> word && word != "VmHWM:") {
    }
    long kib = 0;
    status >> kib;
    return kib;
  }

  static std::string Line(int rank, int number) {
    char text[128];
    std::snprintf(text, sizeof text, "rank %d line %06d of a flood that has to be stored and shown",
                  rank, number);
    return text;
  }

  // Each worker's stdout.log below the directory, by local rank.
  static std::map<std::string, std::filesystem::path> LogFiles(const std::string& directory) {
    std::map<std::string, std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      if (entry.path().filename() != "stdout.log") continue;
      files[entry.path().parent_path().filename()] = entry.path();
    }
    return files;
  }
};

TEST_F(LogFloodTest, NothingIsLostAndTheAgentStaysSmall) {
  Command agent = StartAgent(
      {"--standalone", "--nproc-per-node=" + std::to_string(kWorkers), "--tee=1",
       "--log-dir=" + Path("logs")},
      "seq -f \"rank $RANK line %06g of a flood that has to be stored and shown\" " +
          std::to_string(kLinesPerWorker) + "; echo rank $RANK has written; while [ ! -e " +
          Path("go") + " ]; do sleep 0.05; done");
  for (int rank = 0; rank < kWorkers; ++rank) {
    const std::string number = std::to_string(rank);
    ASSERT_TRUE(agent.WaitForOut("[default" + number + "]:rank " + number + " has written\n"))
        << agent.err();
  }
  const long peak_kib = PeakMemoryKib(agent.pid());
  RecordProperty("agent_peak_kib", std::to_string(peak_kib));
  EXPECT_GT(peak_kib, 0);
  EXPECT_LT(peak_kib, 64 * 1024);
  Write("go", "");
  EXPECT_EQ(agent.Wait(), 0) << agent.err();

  // Every line on the console is complete, and each worker's lines are in order.
  std::vector<int> shown(kWorkers, 0);
  std::istringstream console(agent.out());
  for (std::string line; std::getline(console, line);) {
    int rank = -1;
    ASSERT_EQ(std::sscanf(line.c_str(), "[default%d]:", &rank), 1) << line;
    ASSERT_TRUE(rank >= 0 && rank < kWorkers) << line;
    const std::string text = line.substr(line.find(':') + 1);
    int& count = shown[static_cast<std::size_t>(rank)];
    if (++count <= kLinesPerWorker) {
      ASSERT_EQ(text, Line(rank, count));
    } else {
      ASSERT_EQ(text, "rank " + std::to_string(rank) + " has written");
    }
  }
  EXPECT_EQ(shown, std::vector<int>(kWorkers, kLinesPerWorker + 1));

  const auto files = LogFiles(Path("logs"));
  ASSERT_EQ(files.size(), static_cast<std::size_t>(kWorkers));
  for (const auto& [local_rank, path] : files) {
    std::ifstream file(path);
    int count = 0;
    for (std::string line; std::getline(file, line);) {
      if (++count > kLinesPerWorker) continue;
      ASSERT_EQ(line, Line(std::stoi(local_rank), count));
    }
    EXPECT_EQ(count, kLinesPerWorker + 1) << path;
  }
}

}  // namespace
}  // namespace muster::test
