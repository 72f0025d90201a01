// Nodes without a common file system: each has a checkpoint directory of its own, and any of them
// may be lost with it; and what a restart resumes from if --resume names a starting point.
//
// Every rank is a node here (LOCAL_RANK=0), with the directory DIR/RANK. Real processes, killed
// when their beats report a certain step.
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"
#include "test/trainer/ranks.h"

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;

using test::ReadAll;

const std::vector<std::string> kRestarted = {"TORCHELASTIC_RESTART_COUNT=1"};

std::vector<int> Codes(int ranks, int code) {
  return std::vector<int>(static_cast<std::size_t>(ranks), code);
}

// The step that a run reports resuming from; -1: none.
int ResumedStep(const std::string& out) {
  const std::size_t at = out.find("resuming from ");
  if (at == std::string::npos) return -1;
  return std::stoi(out.substr(out.find(": step ", at) + 7));
}

class LostNodeTest : public testing::Test {
 protected:
  // Steps of 96 images, which up to 4 ranks can share: 22 in an epoch.
  std::vector<std::string> Training(const std::string& name,
                                    const std::vector<std::string>& more = {}) const {
    return test::Joined(
        {"--dataset", "generated", "--model", "mlp", "--epochs", "2", "--batch-size", "96",
         "--comm", "shm", "--flip", "--schedule", "cosine", "--no-eval", "--loss-log",
         dir_.Path(name + ".loss"), "--checkpoint", dir_.Path(name + ".pt")},
        more);
  }
  // The same with checkpoints every 4 steps, in NAME/RANK. `first` is run by each node's shell
  // first.
  std::vector<std::string> OnNodes(const std::string& name,
                                   const std::vector<std::string>& more = {},
                                   const std::string& first = "") const {
    const std::string script = first + "export LOCAL_RANK=0; exec \"$@\" --checkpoint-dir '" +
                               dir_.Path(name) + "'/${RANK:-0}";
    std::vector<std::string> arguments = {"/bin/bash", "-c", script, "bash"};
    std::vector<std::string> training = MusterTrainWith(Training(name, more));
    training.insert(training.end(), {"--checkpoint-every", "4"});
    arguments.insert(arguments.end(), training.begin(), training.end());
    return arguments;
  }
  std::string NodeDir(const std::string& name, int rank) const {
    return dir_.Path(name) + "/" + std::to_string(rank);
  }
  std::string Losses(const std::string& name) const { return ReadAll(dir_.Path(name + ".loss")); }
  std::string Weights(const std::string& name) const { return ReadAll(dir_.Path(name + ".pt")); }

  // Starts ranks, and kills rank `victim` after `step` steps. Returns rank 0's output.
  std::string RunUntilKilled(const std::vector<std::string>& arguments, int world_size, int victim,
                             std::int64_t step, std::vector<std::string> environment = {}) const {
    BeatEar ear;
    environment.push_back(ear.variable());
    Ranks ranks(arguments, world_size, environment);
    EXPECT_TRUE(ear.WaitForStep(step)) << ranks.errors();
    ranks[victim].Signal(SIGKILL);
    for (const int code : ranks.Wait()) EXPECT_NE(code, 0);
    return ranks[0].out();
  }
  // Runs ranks to their end.
  std::string RunToEnd(const std::vector<std::string>& arguments, int world_size,
                       const std::vector<std::string>& environment) const {
    Ranks ranks(arguments, world_size, environment);
    EXPECT_EQ(ranks.Wait(), Codes(world_size, 0)) << ranks.errors();
    return ranks[0].out();
  }

  void LosesTheNodeOfRankZero(int world_size) {
    SCOPED_TRACE(world_size);
    TrainOk(Training("calm"), world_size);
    RunUntilKilled(OnNodes("struck"), world_size, 0, 14);
    fs::remove_all(NodeDir("struck", 0));
    const std::string out = RunToEnd(OnNodes("struck"), world_size, kRestarted);
    EXPECT_NE(out.find("resuming from " + NodeDir("struck", 1) + "/step-"), std::string::npos)
        << out;
    EXPECT_NE(out.find(".pt of rank 1: step "), std::string::npos) << out;
    EXPECT_GE(ResumedStep(out), 4);
    EXPECT_EQ(Losses("struck"), Losses("calm"));
    EXPECT_TRUE(Weights("struck") == Weights("calm")) << "the files differ";
  }

  const test::TempDir dir_;
};

// Training restarted at step 0 without a message.
TEST_F(LostNodeTest, TheNodeOfRankZeroIsLostWithItsDirectory) {
  LosesTheNodeOfRankZero(2);
}

TEST_F(LostNodeTest, TheFirstOfThreeNodesIsLost) {
  LosesTheNodeOfRankZero(3);
}

TEST_F(LostNodeTest, TheFirstOfFourNodesIsLost) {
  LosesTheNodeOfRankZero(4);
}

TEST_F(LostNodeTest, ANodeWithCheckpointsOfAnotherJobTakesThePlaceOfOneThatWasLost) {
  TrainOk(Training("calm"), 2);
  RunToEnd(OnNodes("struck"), 1, {"TORCHELASTIC_RUN_ID=other"});
  fs::rename(NodeDir("struck", 0), dir_.Path("other"));
  RunUntilKilled(OnNodes("struck"), 2, 0, 14, {"TORCHELASTIC_RUN_ID=this"});
  fs::remove_all(NodeDir("struck", 0));
  fs::rename(dir_.Path("other"), NodeDir("struck", 0));
  const std::string out =
      RunToEnd(OnNodes("struck"), 2, {kRestarted[0], "TORCHELASTIC_RUN_ID=this"});
  EXPECT_GE(ResumedStep(out), 4);
  EXPECT_LT(ResumedStep(out), 44);
  EXPECT_TRUE(Weights("struck") == Weights("calm")) << "the files differ";
}

TEST_F(LostNodeTest, ANodeThatHasNothingIsGivenTheCheckpointAtOnce) {
  RunToEnd(OnNodes("done"), 2, {});
  fs::remove_all(NodeDir("done", 0));
  const std::string out = RunToEnd(OnNodes("done"), 2, kRestarted);
  EXPECT_EQ(ResumedStep(out), 44) << out;
  const std::string name = "/step-000000000044.pt";
  EXPECT_NE(ReadAll(NodeDir("done", 0) + name), "");
  // The options in them differ, in the last letter of --checkpoint-dir.
  EXPECT_EQ(fs::file_size(NodeDir("done", 0) + name), fs::file_size(NodeDir("done", 1) + name));
}

TEST_F(LostNodeTest, ARestartThatFindsNothingSaysSo) {
  const std::string warning =
      "warning: this job was restarted, and no rank has a checkpoint of it in ";
  const std::vector<std::string> few = {"--max-steps", "2"};
  EXPECT_EQ(RunToEnd(OnNodes("new", few), 2, {}).find(warning), std::string::npos);
  for (const int rank : {0, 1}) fs::remove_all(NodeDir("new", rank));
  const std::string out = RunToEnd(OnNodes("new", few), 2, kRestarted);
  EXPECT_NE(out.find(warning), std::string::npos) << out;
}

// Rank 1 could not write a file of the size of a checkpoint.
TEST_F(LostNodeTest, OfNodesThatShareTheirDirectoryOneSaves) {
  std::vector<std::string> arguments =
      OnNodes("shared", {"--comm", "gloo"}, "[ $RANK = 0 ] || ulimit -f 100; ");
  for (std::string& argument : arguments) {
    const std::size_t at = argument.find("/${RANK:-0}");
    if (at != std::string::npos) argument.erase(at);
  }
  RunToEnd(arguments, 2, {});
  EXPECT_TRUE(fs::exists(dir_.Path("shared") + "/step-000000000044.pt"));
  for (const auto& entry : fs::directory_iterator(dir_.Path("shared"))) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".sign")) << entry.path();
  }
}

TEST_F(LostNodeTest, ADiskThatIsFullOnOneNodeEndsAllRanksWithItsSentence) {
  const std::string limit = "[ $RANK = 0 ] || ulimit -f 100; ";
  Ranks ranks(OnNodes("full", {"--comm", "gloo"}, limit), 2);
  EXPECT_EQ(ranks.Wait(), Codes(2, 1));
  EXPECT_NE(ranks[1].err().find("rank 1: write " + NodeDir("full", 1)), std::string::npos)
      << ranks[1].err();
  EXPECT_NE(ranks[0].err().find("rank 0: on rank 1: write " + NodeDir("full", 1)),
            std::string::npos)
      << ranks[0].err();
  EXPECT_NE(ranks[0].err().find("File too large"), std::string::npos) << ranks[0].err();
}

// The job restarted from the beginning, and before that from a checkpoint of the previous job.
TEST_F(LostNodeTest, AJobThatWasStartedAfreshGoesOnFromWhatItHasSaved) {
  const std::vector<std::string> fresh = {"--resume", "none", "--lr", "0.01"};
  TrainOk(Training("calm", {"--lr", "0.01"}), 2);
  RunToEnd(OnNodes("fresh"), 2, {});
  EXPECT_EQ(ResumedStep(RunUntilKilled(OnNodes("fresh", fresh), 2, 1, 14)), -1);
  const std::string out = RunToEnd(OnNodes("fresh", fresh), 2, {"MUSTER_ROUND=1"});
  EXPECT_GE(ResumedStep(out), 4);
  EXPECT_LT(ResumedStep(out), 22);
  EXPECT_TRUE(Weights("fresh") == Weights("calm")) << "the files differ";
}

TEST_F(LostNodeTest, AJobThatWasStartedFromAFileGoesOnFromWhatItHasSaved) {
  // A schedule whose first steps do not depend on the total number.
  const std::vector<std::string> constant = {"--schedule", "constant"};
  RunToEnd(OnNodes("first", {"--schedule", "constant", "--max-steps", "16"}), 2, {});
  const std::string file = NodeDir("first", 0) + "/step-000000000016.pt";
  const std::vector<std::string> from_file = {"--schedule", "constant", "--resume", file};
  TrainOk(Training("calm", constant), 2);
  RunToEnd(OnNodes("second", constant), 2, {});
  EXPECT_EQ(ResumedStep(RunUntilKilled(OnNodes("second", from_file), 2, 1, 26)), 16);
  const std::string out = RunToEnd(OnNodes("second", from_file), 2, kRestarted);
  EXPECT_GE(ResumedStep(out), 16);
  EXPECT_LT(ResumedStep(out), 44);
  EXPECT_NE(out.find("resuming from " + NodeDir("second", 0)), std::string::npos) << out;
  EXPECT_TRUE(Weights("second") == Weights("calm")) << "the files differ";
}

}  // namespace
}  // namespace muster::trainer
