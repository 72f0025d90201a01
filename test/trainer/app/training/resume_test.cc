// A training run that is interrupted at any step and restarted ends like an uninterrupted one: the
// same loss in every step, the same bits in every weight.
//
// Uses real processes, which are killed when their beats report a certain step, drawn from a seed
// that each failure prints. Checkpoints are saved every few steps, so some steps are repeated, and
// log files with later steps must be cut.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"
#include "test/trainer/ranks.h"

namespace muster::trainer {
namespace {

using test::ReadAll;

constexpr int kStoppedToResume = 143;

class ResumeTest : public testing::Test {
 protected:
  // A training of 34 steps with everything that has a state: momentum, a schedule, augmentation.
  std::vector<std::string> Training(const std::string& name) const {
    return test::Joined(
        test::WordsOf("--dataset generated --model mlp --epochs 2 --schedule cosine --flip "
                      "--comm gloo --warmup-steps 5"),
        {"--loss-log", dir_.Path(name + ".loss"), "--checkpoint", dir_.Path(name + ".pt"),
         "--metrics", dir_.Path(name + ".jsonl")});
  }
  std::vector<std::string> Resumable(const std::string& name,
                                     const std::vector<std::string>& more = {}) const {
    const std::vector<std::string> keeps = {
        "--checkpoint-dir", dir_.Path(name + ".ckpt"), "--checkpoint-every", "4", "--keep", "2"};
    return MusterTrainWith(test::Joined(test::Joined(Training(name), keeps), more));
  }

  std::string Losses(const std::string& name) const { return ReadAll(dir_.Path(name + ".loss")); }
  std::string Weights(const std::string& name) const { return ReadAll(dir_.Path(name + ".pt")); }
  // The metrics without what depends on the time.
  std::vector<std::pair<std::int64_t, std::string>> Metrics(const std::string& name) const {
    std::vector<std::pair<std::int64_t, std::string>> records;
    std::ifstream file(dir_.Path(name + ".jsonl"));
    for (std::string line; std::getline(file, line);) {
      const std::size_t at = line.find("/loss\":");
      if (at == std::string::npos) continue;
      records.emplace_back(std::stoll(line.substr(8)), line.substr(at, line.find(',', at) - at));
    }
    return records;
  }

  void KilledAtRandomEndsTheSame(int world_size, std::uint32_t seed,
                                 const std::vector<std::string>& more = {}) {
    std::vector<std::string> calm = test::Joined(Training("calm"), more);
    TrainOk(calm, world_size);
    ASSERT_NE(Weights("calm"), "");
    std::mt19937 random(seed);
    const auto victim = static_cast<int>(random() % static_cast<std::uint32_t>(world_size));
    const auto step = static_cast<std::int64_t>(1 + random() % 33);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": rank " << victim << " of "
                                    << world_size << " is killed after step " << step);
    {
      BeatEar ear;
      Ranks ranks(Resumable("struck", more), world_size, {ear.variable()});
      ASSERT_TRUE(ear.WaitForStep(step)) << ranks.errors();
      ranks[victim].Signal(SIGKILL);
      for (const int code : ranks.Wait()) EXPECT_NE(code, 0);
    }
    Ranks again(Resumable("struck", more), world_size, {"TORCHELASTIC_RESTART_COUNT=1"});
    EXPECT_EQ(again.Wait(), std::vector<int>(static_cast<std::size_t>(world_size), 0))
        << again.errors();
    EXPECT_EQ(Losses("struck"), Losses("calm"));
    EXPECT_EQ(Metrics("struck"), Metrics("calm"));
    EXPECT_TRUE(Weights("struck") == Weights("calm")) << "the files differ";
  }

  const test::TempDir dir_;
};

TEST_F(ResumeTest, ARunThatWasKilledEndsAsOneThatWasNot) {
  KilledAtRandomEndsTheSame(1, 20240);
}

TEST_F(ResumeTest, RanksOfWhichOneWasKilledEndAsThoseOfWhichNoneWas) {
  KilledAtRandomEndsTheSame(2, 7);
}

TEST_F(ResumeTest, ThreeRanksOfWhichOneWasKilledEndAsThoseOfWhichNoneWas) {
  KilledAtRandomEndsTheSame(3, 31, {"--comm", "shm", "--batch-size", "126"});
}

TEST_F(ResumeTest, FourRanksOfWhichOneWasKilledEndAsThoseOfWhichNoneWas) {
  KilledAtRandomEndsTheSame(4, 41, {"--comm", "shm"});
}

// With three ranks or more, the position of a gradient in its bucket matters: Gloo sums the ranks
// in another order in each part of it. DDP rebuilds its buckets after the first step, so the steps
// after a resume were rounded differently.
TEST_F(ResumeTest, ThreeRanksAddUpAfterAResumeAsBefore) {
  KilledAtRandomEndsTheSame(3, 5, {"--batch-size", "120"});
}

TEST_F(ResumeTest, FourRanksThatSaveEachStepAddUpAsBefore) {
  KilledAtRandomEndsTheSame(4, 11, {"--batch-size", "120", "--checkpoint-every", "1"});
}

// The order of the gradients is known after the first step, although no step has used it yet.
TEST_F(ResumeTest, ThreeRanksThatStoppedAfterTheirFirstStepAddUpAsBefore) {
  const std::vector<std::string> more = {"--batch-size", "120", "--schedule", "constant"};
  std::vector<std::string> calm = test::Joined(Training("calm"), more);
  TrainOk(calm, 3);
  std::vector<std::string> one_step = more;
  one_step.insert(one_step.end(), {"--max-steps", "1"});
  Ranks first(Resumable("first", one_step), 3);
  ASSERT_EQ(first.Wait(), (std::vector<int>{0, 0, 0})) << first.errors();
  Ranks rest(Resumable("first", more), 3);
  ASSERT_EQ(rest.Wait(), (std::vector<int>{0, 0, 0})) << rest.errors();
  EXPECT_EQ(Losses("first"), Losses("calm"));
  EXPECT_TRUE(Weights("first") == Weights("calm")) << "the files differ";
}

// Only one rank gets the signal; all exit after the same step, with a checkpoint.
TEST_F(ResumeTest, SigtermEndsAllRanksAfterAStepAndTheNextRunGoesOn) {
  TrainOk(Training("calm"), 2);
  BeatEar ear;
  Ranks ranks(Resumable("told", {"--checkpoint-every", "0"}), 2, {ear.variable()});
  ASSERT_TRUE(ear.WaitForStep(3)) << ranks.errors();
  ranks[1].Signal(SIGTERM);
  EXPECT_EQ(ranks.Wait(), (std::vector<int>{kStoppedToResume, kStoppedToResume})) << ranks.errors();
  EXPECT_NE(ranks[0].out().find("stopped by SIGTERM after step "), std::string::npos);
  EXPECT_NE(ranks[0].out().find("; checkpoint " + dir_.Path("told.ckpt")), std::string::npos);
  EXPECT_EQ(Weights("told"), "") << "the model is not done";

  Ranks again(Resumable("told", {"--checkpoint-every", "0"}), 2);
  EXPECT_EQ(again.Wait(), (std::vector<int>{0, 0})) << again.errors();
  EXPECT_NE(again[0].out().find("resuming from "), std::string::npos) << again[0].out();
  EXPECT_EQ(Losses("told"), Losses("calm"));
  EXPECT_TRUE(Weights("told") == Weights("calm")) << "the files differ";
}

// A user pressed Ctrl-C, or closed the terminal, and lost everything trained since the last
// checkpoint.
TEST_F(ResumeTest, CtrlCAndAClosedTerminalEndTheRunAfterAStepWithACheckpoint) {
  for (const int signal : {SIGINT, SIGHUP}) {
    const std::string name = signal == SIGINT ? "SIGINT" : "SIGHUP";
    BeatEar ear;
    Ranks alone(Resumable(name, {"--checkpoint-every", "0"}), 1, {ear.variable()});
    ASSERT_TRUE(ear.WaitForStep(3)) << alone.errors();
    alone[0].Signal(signal);
    EXPECT_EQ(alone.Wait(), std::vector<int>{128 + signal}) << alone.errors();
    EXPECT_NE(alone[0].out().find("stopped by " + name + " after step "), std::string::npos);
    EXPECT_NE(alone[0].out().find("; checkpoint " + dir_.Path(name + ".ckpt")), std::string::npos);
  }
}

// In float64 the losses of one rank equal those of two.
TEST_F(ResumeTest, AWorldOfTwoGoesOnAloneAtTheSamePlace) {
  const std::vector<std::string> more = {"--dtype", "float64", "--schedule", "constant"};
  std::vector<std::string> calm = test::Joined(Training("calm"), more);
  TrainOk(calm, 2);
  std::vector<std::string> first = more;
  first.insert(first.end(), {"--max-steps", "10"});
  ASSERT_EQ(Ranks(Resumable("shrunk", first), 2).Wait(), (std::vector<int>{0, 0}));
  Ranks alone(Resumable("shrunk", more), 1);
  ASSERT_EQ(alone.Wait(), std::vector<int>{0}) << alone.errors();
  EXPECT_NE(alone[0].out().find("the world had 2 ranks and has 1: steps of 128 images"),
            std::string::npos)
      << alone[0].out();
  std::istringstream ours(Losses("shrunk"));
  std::istringstream theirs(Losses("calm"));
  int lines = 0;
  for (double step, our_loss, their_loss; ours >> step >> our_loss && theirs >> step >> their_loss;
       ++lines) {
    EXPECT_NEAR(our_loss, their_loss, 1e-8) << "step " << step;
  }
  EXPECT_EQ(lines, 34);
}

TEST_F(ResumeTest, TheBatchIsScaledWithTheWorldWhereThatIsAskedFor) {
  ASSERT_EQ(Ranks(Resumable("scaled", {"--max-steps", "8"}), 2).Wait(), (std::vector<int>{0, 0}));
  Ranks alone(Resumable("scaled", {"--on-resize", "scale-batch", "--epochs", "1"}), 1);
  ASSERT_EQ(alone.Wait(), std::vector<int>{0}) << alone.errors();
  // 8 steps of 128 images, and the other 1026 of 2050 in steps of 64.
  EXPECT_NE(alone[0].out().find("epochs         1 (25 steps of 64 images)\n"), std::string::npos)
      << alone[0].out();
}

// Each restart took the previous run's batch for the requested one: 128, 64, 128, 256.
TEST_F(ResumeTest, AScaledBatchIsTheSameAgainAfterTheWorldHasShrunkAndGrown) {
  const auto steps_of = [this](int world_size, const std::string& until) {
    Ranks ranks(Resumable("waves", {"--on-resize", "scale-batch", "--schedule", "constant",
                                    "--max-steps", until, "--no-eval"}),
                world_size);
    EXPECT_EQ(ranks.Wait(), std::vector<int>(static_cast<std::size_t>(world_size), 0))
        << ranks.errors();
    const std::string out = ranks[0].out();
    const std::size_t at = out.rfind(" steps of ");
    return at == std::string::npos ? 0 : std::stoi(out.substr(at + 10));
  };
  EXPECT_EQ(steps_of(2, "2"), 128);
  EXPECT_EQ(steps_of(1, "4"), 64);
  EXPECT_EQ(steps_of(1, "6"), 64);
  EXPECT_EQ(steps_of(2, "8"), 128);
}

TEST_F(ResumeTest, ARunThatIsDoneSaysSoAndIsLeftAlone) {
  ASSERT_EQ(Ranks(Resumable("done"), 1).Wait(), std::vector<int>{0});
  const std::string weights = Weights("done");
  Ranks again(Resumable("done"), 1);
  ASSERT_EQ(again.Wait(), std::vector<int>{0}) << again.errors();
  EXPECT_NE(again[0].out().find("resumed        after step 34\n"), std::string::npos);
  // It printed "speed 0 images/s".
  EXPECT_NE(again[0].out().find("speed          nothing to do: no steps were left"),
            std::string::npos)
      << again[0].out();
  EXPECT_NE(again[0].out().find("test accuracy  "), std::string::npos);
  EXPECT_TRUE(Weights("done") == weights);
}

// Its own checkpoints were removed in favor of the previous run's, of later steps.
TEST_F(ResumeTest, ARunThatBeginsAgainInAUsedDirectoryHasItsOwnCheckpoints) {
  const std::string directory = dir_.Path("used.ckpt");
  // The end of a run is always saved; other saves may be a step or more late, as each waits for the
  // previous one.
  for (const char* const steps : {"30", "34"}) {
    ASSERT_EQ(Ranks(Resumable("used", {"--checkpoint-every", "0", "--max-steps", steps}), 1).Wait(),
              std::vector<int>{0});
  }
  Ranks again(Resumable("used", {"--resume", "none", "--max-steps", "32"}), 1);
  ASSERT_EQ(again.Wait(), std::vector<int>{0}) << again.errors();
  EXPECT_NE(again[0].out().find("has 2 checkpoints of an earlier run, of steps 30 to 34; this run"),
            std::string::npos)
      << again[0].out();
  EXPECT_EQ(ReadAll(directory + "/latest").substr(0, 21), "step-000000000032.pt\n");
  EXPECT_TRUE(std::filesystem::exists(directory + "/step-000000000030.pt")) << "of the run before";
  int kept = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    kept += entry.path().extension() == ".pt" ? 1 : 0;
  }
  // Two of the previous run, and of its own as many as --keep allows, or one: a save waits for the
  // previous one, and on a busy machine that may take as long as the run.
  EXPECT_GE(kept, 3);
  EXPECT_LE(kept, 4);
  Ranks returned(Resumable("used", {"--resume", directory + "/latest", "--max-steps", "33"}), 1);
  ASSERT_EQ(returned.Wait(), std::vector<int>{0}) << returned.errors();
  EXPECT_NE(returned[0].out().find("resuming from " + directory + "/step-000000000032.pt: step 32"),
            std::string::npos)
      << returned[0].out();
}

// Two nodes without a common file system, of which the second was killed before its last save: its
// checkpoints were taken for an earlier run's, and never removed.
TEST_F(ResumeTest, ANodeThatLacksTheLastCheckpointKeepsItsOwnLine) {
  const auto on_nodes = [&](const std::string& steps) {
    std::vector<std::string> words = {
        "/bin/bash", "-c",
        "export LOCAL_RANK=0; exec \"$@\" --checkpoint-dir '" + dir_.Path("node") + "'$RANK",
        "bash"};
    std::vector<std::string> training = Training("nodes");
    training.insert(training.end(),
                    {"--checkpoint-every", "4", "--keep", "2", "--max-steps", steps});
    training = MusterTrainWith(training);
    words.insert(words.end(), training.begin(), training.end());
    Ranks ranks(words, 2);
    EXPECT_EQ(ranks.Wait(), (std::vector<int>{0, 0})) << ranks.errors();
    return ranks[0].out() + ranks[1].out();
  };
  const std::string second = dir_.Path("node1");
  const auto has = [&](const char* step) {
    return std::filesystem::exists(second + "/step-0000000000" + step + ".pt");
  };
  on_nodes("8");
  std::filesystem::remove(second + "/step-000000000008.pt");
  std::string latest = ReadAll(second + "/latest");
  latest.replace(latest.find("08.pt"), 5, "04.pt");
  std::ofstream(second + "/latest") << latest;
  const std::string out = on_nodes("12");
  EXPECT_EQ(out.find("of an earlier run"), std::string::npos) << out;
  EXPECT_TRUE(has("12") && has("08") && !has("04"));
}

TEST_F(ResumeTest, ACheckpointOfAnotherRunIsRefusedByAllRanksAlike) {
  ASSERT_EQ(Ranks(Resumable("one", {"--max-steps", "8"}), 1).Wait(), std::vector<int>{0});
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes = {
      {{"--seed", "1"}, "it was made with --seed 0"},
      {{"--dtype", "float64"}, "it was made with --dtype float32, and this run has float64"},
      {{"--algorithm", "adamw"}, "it was made with --algorithm sgd, and this run has adamw"},
      {{"--model", "cnn"}, "it was made with --model mlp"},
      {{"--model", "mlp-large"}, "it was made with --model mlp, and this run has mlp-large"},
      {{"--resume", dir_.Path("one.pt")}, "it is not a checkpoint of muster-train"},
      {{"--resume", dir_.Path("none.pt")}, "none.pt"},
  };
  for (const auto& [more, sentence] : mistakes) {
    Ranks ranks(Resumable("one", more), 2);
    EXPECT_EQ(ranks.Wait(), (std::vector<int>{2, 2})) << sentence;
    for (const int rank : {0, 1}) {
      EXPECT_NE(ranks[rank].err().find(sentence), std::string::npos) << ranks[rank].err();
    }
  }
}

// `--width` printed the shapes of eight tensors, and `--heads` nothing, as it changes no shape.
TEST_F(ResumeTest, ACheckpointOfAnotherSizeIsRefusedWithTheFlagThatDiffers) {
  const auto with = [this](const std::string& width, const std::string& heads,
                           const std::string& layers) {
    return MusterTrainWith({"--model", "gpt", "--width", width, "--heads", heads, "--layers",
                            layers, "--context", "16", "--max-steps", "2", "--dataset", "generated",
                            "--comm", "gloo", "--checkpoint-dir", dir_.Path("gpt.ckpt")});
  };
  Ranks first(with("16", "2", "1"), 1);
  ASSERT_EQ(first.Wait(), std::vector<int>{0}) << first.errors();
  const std::pair<std::vector<std::string>, std::string> mistakes[] = {
      {with("32", "2", "1"), ": it was made with --width 16, and this run has 32\n"},
      {with("16", "4", "1"), ": it was made with --heads 2, and this run has 4\n"},
      {with("16", "2", "2"), ": it was made with --layers 1, and this run has 2\n"},
  };
  for (const auto& [arguments, sentence] : mistakes) {
    Ranks ranks(arguments, 1);
    EXPECT_EQ(ranks.Wait(), std::vector<int>{2}) << sentence;
    EXPECT_NE(ranks[0].err().find(sentence), std::string::npos) << ranks[0].err();
  }
}

// The files next to the checkpoints suffice to repeat such a run, or to resume it.
TEST_F(ResumeTest, TheOptionsBesideTheCheckpointsAreThoseOfTheRun) {
  TrainOk(Training("calm"), 1);
  ASSERT_EQ(Ranks(Resumable("parted"), 1).Wait(), std::vector<int>{0});
  const std::string config = dir_.Path("parted.ckpt/config.toml");
  TrainOk({"--config", config, "--checkpoint-dir", dir_.Path("again.ckpt"), "--checkpoint",
           dir_.Path("again.pt"), "--loss-log", dir_.Path("again.loss"), "--metrics",
           dir_.Path("again.jsonl")});
  EXPECT_EQ(Losses("again"), Losses("calm"));
  EXPECT_TRUE(Weights("again") == Weights("calm")) << "the files differ";
  EXPECT_NE(TrainOk({"--config", config}).find("resumed        after step 34\n"),
            std::string::npos);
}

// A run resumed silently with another learning rate.
TEST_F(ResumeTest, OptionsThatHaveChangedAreSaid) {
  ASSERT_EQ(Ranks(Resumable("tuned", {"--max-steps", "8", "--lr", "0.1"}), 1).Wait(),
            std::vector<int>{0});
  Ranks again(Resumable("tuned", {"--max-steps", "10", "--lr", "0.01", "--threads", "1"}), 1);
  ASSERT_EQ(again.Wait(), std::vector<int>{0}) << again.errors();
  EXPECT_NE(
      again[0].out().find("\n--max-steps was 8 and is 10 now; --lr was 0.1 and is 0.01 now\n"),
      std::string::npos)
      << again[0].out();
}

// The file size limit simulates a full disk: the write fails in the middle.
TEST_F(ResumeTest, ADiskThatIsFullEndsTheRunInOneSentence) {
  std::string command =
      "ulimit -f 100; exec \"$@\"";  // blocks of 1024 bytes; a checkpoint has 2 MB
  std::vector<std::string> arguments = {"/bin/bash", "-c", command, "bash"};
  const std::vector<std::string> training = Resumable("full");
  arguments.insert(arguments.end(), training.begin(), training.end());
  Ranks ranks(arguments, 1);
  EXPECT_EQ(ranks.Wait(), std::vector<int>{1});
  EXPECT_NE(ranks.errors().find("File too large"), std::string::npos) << ranks.errors();
  EXPECT_EQ(Weights("full"), "");
}

}  // namespace
}  // namespace muster::trainer
