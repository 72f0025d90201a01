// Checkpoints in shards: a run that resumes from one ends with the same bits as an uninterrupted
// one, and as one with single-file checkpoints, for any number of ranks.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"
#include "test/trainer/ranks.h"

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;
using test::ReadAll;

const std::vector<std::string> kInShards = {"--checkpoint-format", "shards"};

class ShardsTest : public testing::Test {
 protected:
  using Words = std::vector<std::string>;

  // A training of 36 steps with everything stateful, whose first steps do not depend on the total
  // number.
  Words Training(const std::string& name, const Words& more = {}) const {
    return test::Joined(
        {"--dataset", "generated", "--model", "mlp", "--epochs", "2", "--batch-size", "120",
         "--flip", "--ema", "0.9", "--comm", "gloo", "--warmup-steps", "5", "--loss-log",
         dir_.Path(name + ".loss"), "--checkpoint", dir_.Path(name + ".pt")},
        more);
  }
  Words Resumable(const std::string& name, const Words& more = {}) const {
    Words words = test::Joined(Training(name, {"--checkpoint-dir", dir_.Path(name),
                                               "--checkpoint-every", "4", "--keep", "2"}),
                               more);
    return MusterTrainWith(words);
  }
  Words Sharded(const std::string& name, const Words& more = {}) const {
    Words words = test::Joined(kInShards, more);
    return Resumable(name, words);
  }

  // Runs ranks to their end. Returns rank 0's output.
  static std::string Run(const Words& arguments, int world_size, const Words& environment = {}) {
    Ranks ranks(arguments, world_size, environment);
    EXPECT_EQ(ranks.Wait(), std::vector<int>(static_cast<std::size_t>(world_size), 0))
        << ranks.errors();
    return ranks[0].out();
  }

  std::string StepPath(const std::string& name, const std::string& step) const {
    return dir_.Path(name) + "/step-0000000000" + step;
  }
  // 0 if the directory does not exist.
  static int FilesIn(const std::string& path) {
    std::error_code ignored;
    const fs::directory_iterator files(path, ignored);
    return static_cast<int>(std::distance(files, fs::directory_iterator()));
  }
  void ExpectSame(const std::string& one, const std::string& other) const {
    EXPECT_EQ(ReadAll(dir_.Path(one + ".loss")), ReadAll(dir_.Path(other + ".loss")));
    ASSERT_NE(ReadAll(dir_.Path(one + ".pt")), "");
    EXPECT_TRUE(ReadAll(dir_.Path(one + ".pt")) == ReadAll(dir_.Path(other + ".pt")))
        << "the files differ";
  }

  void GoesOnAsAWholeOneDoes(int world_size) {
    SCOPED_TRACE(world_size);
    TrainOk(Training("calm"), world_size);
    for (const bool shards : {false, true}) {
      const std::string name = shards ? "shards" : "whole";
      Words first = {"--max-steps", "10"};
      Words rest = {};
      if (shards) first.insert(first.end(), kInShards.begin(), kInShards.end());
      if (shards) rest = kInShards;
      Run(Resumable(name, first), world_size);
      EXPECT_EQ(FilesIn(StepPath(name, "10")), shards ? world_size + 1 : 0) << "with the index";
      const std::string out = Run(Resumable(name, rest), world_size);
      EXPECT_NE(out.find("resuming from " + StepPath(name, "10")), std::string::npos) << out;
      ExpectSame(name, "calm");
    }
  }

  const test::TempDir dir_;
};

TEST_F(ShardsTest, OneRankGoesOnAsWithAWholeCheckpoint) {
  GoesOnAsAWholeOneDoes(1);
}

TEST_F(ShardsTest, TwoRanksGoOnAsWithAWholeCheckpoint) {
  GoesOnAsAWholeOneDoes(2);
}

TEST_F(ShardsTest, ThreeRanksGoOnAsWithAWholeCheckpoint) {
  GoesOnAsAWholeOneDoes(3);
}

TEST_F(ShardsTest, ARunThatIsKilledAtAnyStepEndsTheSame) {
  TrainOk(Training("calm"), 3);
  {
    BeatEar ear;
    Ranks ranks(Sharded("struck"), 3, {ear.variable()});
    ASSERT_TRUE(ear.WaitForStep(19)) << ranks.errors();
    ranks[2].Signal(SIGKILL);
    for (const int code : ranks.Wait()) EXPECT_NE(code, 0);
  }
  Run(Sharded("struck"), 3, {"TORCHELASTIC_RESTART_COUNT=1"});
  ExpectSame("struck", "calm");
}

TEST_F(ShardsTest, TheFormMayChangeBetweenRuns) {
  TrainOk(Training("calm"), 2);
  Run(Resumable("mixed", {"--max-steps", "8"}), 2);
  Run(Sharded("mixed", {"--max-steps", "16"}), 2);
  EXPECT_TRUE(fs::is_regular_file(StepPath("mixed", "08.pt")) ||
              fs::is_directory(StepPath("mixed", "12")));
  Run(Resumable("mixed", {"--max-steps", "20"}), 2);
  Run(Sharded("mixed"), 2);
  ExpectSame("mixed", "calm");
}

TEST_F(ShardsTest, TheNumberOfRanksMayChange) {
  for (const bool shards : {false, true}) {
    const std::string name = shards ? "shards" : "whole";
    int until = 8;
    for (const int world_size : {2, 3, 1}) {
      Words more = {"--max-steps", std::to_string(until)};
      if (shards) more.insert(more.end(), kInShards.begin(), kInShards.end());
      Run(Resumable(name, more), world_size);
      if (shards) {
        EXPECT_EQ(FilesIn(StepPath(name, until == 8 ? "08" : std::to_string(until))),
                  world_size + 1);
      }
      until += 8;
    }
  }
  ExpectSame("shards", "whole");
}

// The index is written to a FIFO: once the FIFO can be opened, all shards are there and the index
// is not.
TEST_F(ShardsTest, KilledBetweenShardsAndIndexTheRunGoesOnFromTheOneBefore) {
  TrainOk(Training("calm"), 2);
  Run(Sharded("struck", {"--max-steps", "4"}), 2);
  fs::create_directory(StepPath("struck", "08"));
  const std::string fifo = StepPath("struck", "08") + "/index.json.tmp";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0666), 0);
  {
    BeatEar ear;
    Ranks ranks(Sharded("struck"), 2, {ear.variable()});
    ASSERT_TRUE(ear.WaitForStep(10)) << ranks.errors();
    const int fd = open(fifo.c_str(), O_RDONLY | O_CLOEXEC);
    for (const int rank : {0, 1}) ranks[rank].Signal(SIGKILL);
    // The second may notice that the first is gone, and exit by itself.
    for (const int code : ranks.Wait()) EXPECT_NE(code, 0);
    close(fd);
  }
  for (const char* shard :
       {"/shard-00001-of-00002.safetensors", "/shard-00002-of-00002.safetensors"}) {
    EXPECT_TRUE(fs::is_regular_file(StepPath("struck", "08") + shard));
  }
  EXPECT_FALSE(fs::exists(StepPath("struck", "08") + "/index.json"));
  fs::remove(fifo);
  const std::string out = Run(Sharded("struck"), 2, {"TORCHELASTIC_RESTART_COUNT=1"});
  EXPECT_NE(out.find("warning: the checkpoint of step 8 is skipped: the run that wrote " +
                     StepPath("struck", "08") + " ended before it was whole"),
            std::string::npos)
      << out;
  EXPECT_NE(out.find("resuming from " + StepPath("struck", "04") + ": step 4"), std::string::npos)
      << out;
  ExpectSame("struck", "calm");
  EXPECT_FALSE(fs::exists(StepPath("struck", "08"))) << "with --keep 2";
}

// A test after an epoch can take long. A run killed during it lost the checkpoint of the epoch's
// last steps, whose shards were complete but had no index.
TEST_F(ShardsTest, ATestThatFailsLeavesTheCheckpointBeforeIt) {
  Words words =
      test::Joined({"test/trainer/recipe/own_program", "throw-metric", "--batch-size=12",
                    "--epochs=1", "--checkpoint-dir=" + dir_.Path("run"), "--checkpoint-every=7"},
                   kInShards);
  Ranks ranks(words, 2);
  for (const int code : ranks.Wait()) EXPECT_NE(code, 0);
  EXPECT_NE(ranks.errors().find("it threw something other than a std::exception"),
            std::string::npos)
      << ranks.errors();
  EXPECT_EQ(FilesIn(StepPath("run", "07")), 3) << "with the index";
}

// Two nodes of two ranks each, without a common file system.
TEST_F(ShardsTest, TheRanksOfEachNodeWriteTheirOwnAndANewNodeGetsOneAtOnce) {
  const auto on_nodes = [&](const Words& more) {
    Words training = Training("nodes", {"--comm", "gloo", "--checkpoint-every", "4"});
    for (const Words& words : {kInShards, more}) {
      training.insert(training.end(), words.begin(), words.end());
    }
    Words words = {"/bin/bash", "-c",
                   "export LOCAL_RANK=$((RANK % 2)); exec \"$@\" --checkpoint-dir '" +
                       dir_.Path("node") + "'$((RANK / 2))",
                   "bash"};
    training = MusterTrainWith(training);
    words.insert(words.end(), training.begin(), training.end());
    return words;
  };
  TrainOk(Training("calm"), 4);
  Run(on_nodes({"--max-steps", "10"}), 4);
  for (const char* node : {"node0", "node1"}) EXPECT_EQ(FilesIn(StepPath(node, "10")), 3) << node;
  const auto written = fs::last_write_time(StepPath("node1", "10") + "/index.json");
  fs::remove_all(dir_.Path("node0"));
  const std::string out = Run(on_nodes({"--max-steps", "10"}), 4, {"TORCHELASTIC_RESTART_COUNT=1"});
  EXPECT_NE(out.find("resuming from " + StepPath("node1", "10") + " of rank 2: step 10"),
            std::string::npos)
      << out;
  EXPECT_EQ(FilesIn(StepPath("node0", "10")), 3);
  EXPECT_EQ(fs::last_write_time(StepPath("node1", "10") + "/index.json"), written)
      << "the only copy was written again";
  Run(on_nodes({}), 4, {"TORCHELASTIC_RESTART_COUNT=1"});
  ExpectSame("nodes", "calm");
}

TEST_F(ShardsTest, ADiskThatIsFullForOneRankEndsAllWithItsSentence) {
  Words words = {"/bin/bash", "-c", "[ $RANK = 0 ] || ulimit -f 100; exec \"$@\"", "bash"};
  const Words training = Sharded("full");
  words.insert(words.end(), training.begin(), training.end());
  Ranks ranks(words, 2);
  EXPECT_EQ(ranks.Wait(), (std::vector<int>{1, 1}));
  const std::string sentence =
      "write " + StepPath("full", "04") + "/shard-00002-of-00002.safetensors: File too large";
  EXPECT_NE(ranks[1].err().find("rank 1: " + sentence), std::string::npos) << ranks[1].err();
  EXPECT_NE(ranks[0].err().find("rank 0: on rank 1: " + sentence), std::string::npos)
      << ranks[0].err();
  EXPECT_FALSE(fs::exists(StepPath("full", "04") + "/index.json"));
}

TEST_F(ShardsTest, TheBestIsKeptAndARunStartsFromAPath) {
  Run(Sharded("best", {"--keep", "1", "--keep-best", "--checkpoint-every", "0"}), 2);
  EXPECT_EQ(ReadAll(dir_.Path("best") + "/best").rfind("step-0000000000", 0), 0u);
  const std::string best = ReadAll(dir_.Path("best") + "/best").substr(0, 17);
  EXPECT_TRUE(fs::exists(dir_.Path("best") + "/" + best + "/index.json")) << best;
  // Its options stay as they were.
  const std::string out =
      Run(Resumable("other", {"--resume", dir_.Path("best") + "/" + best, "--epochs", "3"}), 3);
  EXPECT_NE(out.find("resuming from " + dir_.Path("best") + "/" + best), std::string::npos) << out;
  const std::string by_mark =
      Run(Resumable("marked", {"--resume", dir_.Path("best") + "/best", "--epochs", "3"}), 2);
  EXPECT_NE(by_mark.find("resuming from " + dir_.Path("best") + "/" + best), std::string::npos)
      << by_mark;
  fs::create_directories(dir_.Path("empty"));
  Ranks none(Resumable("none", {"--resume", dir_.Path("empty")}), 2);
  EXPECT_EQ(none.Wait(), (std::vector<int>{2, 2}));
  EXPECT_NE(none.errors().find("resume: read a checkpoint from " + dir_.Path("empty") +
                               ": it has neither an index.json nor checkpoints"),
            std::string::npos)
      << none.errors();
}

// It was replaced shard by shard, and a run killed meanwhile had lost it.
TEST_F(ShardsTest, ACheckpointThatIsResumedFromByItsPathIsLeftAsItIs) {
  Run(Sharded("path", {"--max-steps", "10"}), 2);
  const std::string index = StepPath("path", "10") + "/index.json";
  const auto written = fs::last_write_time(index);
  Run(Sharded("path", {"--resume", StepPath("path", "10") + "/", "--max-steps", "12"}), 2);
  EXPECT_EQ(fs::last_write_time(index), written);
  EXPECT_TRUE(fs::exists(StepPath("path", "12") + "/index.json"));
}

// The next run silently started from the beginning.
TEST_F(ShardsTest, ARunWithoutAWholeCheckpointSaysThatItSkipsTheRest) {
  fs::create_directories(StepPath("half", "04"));
  const std::string out = Run(Sharded("half", {"--max-steps", "2"}), 2);
  EXPECT_NE(out.find("warning: the checkpoint of step 4 is skipped: the run that wrote " +
                     StepPath("half", "04") + " ended before it was whole"),
            std::string::npos)
      << out;
}

// "read .../step-000000000010.pt: No such file", which never existed.
TEST_F(ShardsTest, ANewestCheckpointWithoutAnIndexIsNamedAsWhatItIs) {
  Run(Sharded("lost", {"--max-steps", "10"}), 2);
  fs::remove(StepPath("lost", "10") + "/index.json");
  // Of step 8, or of a later one if a write was still in progress: a slow disk means fewer
  // checkpoints, not slower steps.
  std::string before;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir_.Path("lost"))) {
    if (fs::exists(entry.path() / "index.json")) before = entry.path().string();
  }
  ASSERT_NE(before, "") << "with --keep 2";
  const std::string out = Run(Sharded("lost", {"--max-steps", "10"}), 2);
  EXPECT_NE(out.find("warning: the checkpoint of step 10 is skipped: the run that wrote " +
                     StepPath("lost", "10") + " ended before it was whole"),
            std::string::npos)
      << out;
  EXPECT_NE(out.find("resuming from " + before), std::string::npos) << out;
}

// The run resumed from step 10 as if it were step 20.
TEST_F(ShardsTest, ACheckpointUnderTheNameOfAnotherStepIsRefused) {
  Run(Sharded("name", {"--max-steps", "10"}), 2);
  fs::rename(StepPath("name", "10"), StepPath("name", "20"));
  std::ofstream(dir_.Path("name") + "/latest") << "step-000000000020\njob x\n";
  Ranks ranks(Sharded("name", {"--max-steps", "22"}), 2);
  EXPECT_EQ(ranks.Wait(), (std::vector<int>{2, 2}));
  EXPECT_NE(ranks.errors().find("its name says step 20, and it is of step 10"), std::string::npos)
      << ranks.errors();
}

}  // namespace
}  // namespace muster::trainer
