// Ranks that share a model train it as one process does: the same losses, and the same weights to
// 1e-12 in float64, whichever way it is shared; and checkpoints go from any mesh to any other.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "test/support/temp_dir.h"
#include "test/trainer/ranks.h"
#include "trainer/io/state_dict.h"
#include "trainer/io/torch_file.h"

namespace muster::trainer {
namespace {

using test::ReadAll;
using Words = std::vector<std::string>;

Words SplitWords(const std::string& text) {
  return absl::StrSplit(text, ' ', absl::SkipEmpty());
}

class MeshTest : public testing::Test {
 protected:
  // A training with everything stateful: a schedule, clipping, averages, decay of some parameters.
  Words Training(const std::string& name, const std::string& flags, int steps = 8) const {
    Words words = SplitWords(
        "--dataset generated --model gpt --layers 4 --heads 4 --width 16 --context 8 "
        "--vocabulary 257 --dtype float64 --threads 1 --batch-size 16 --algorithm adamw --lr 1e-3 "
        "--clip 0.5 --ema 0.9 --weight-decay 0.1 --no-decay-vectors --schedule cosine "
        "--warmup-steps 2");
    const Words own = {"--max-steps", absl::StrCat(steps), "--loss-log",
                       Loss(name),    "--checkpoint",      Weights(name)};
    words.insert(words.end(), own.begin(), own.end());
    const Words more = SplitWords(flags);
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string Resumable(const std::string& name) const {
    return absl::StrCat(" --checkpoint-every 4 --checkpoint-dir ", dir_.Path(name + ".ckpt"));
  }
  std::string Loss(const std::string& name) const { return dir_.Path(name + ".loss"); }
  std::string Weights(const std::string& name) const { return dir_.Path(name + ".pt"); }

  // The largest difference in any weight.
  double Difference(const std::string& a, const std::string& b) const {
    const Value first = ReadTorchFile(Weights(a)).value();
    const Value second = ReadTorchFile(Weights(b)).value();
    double most = 0;
    for (const auto& [key, value] : *first.dict()) {
      const auto& name = std::get<std::string>(key);
      const Value* const found = second.Find(name);
      if (found == nullptr || found->tensor()->sizes() != value.tensor()->sizes()) {
        ADD_FAILURE() << name;
        continue;
      }
      most = std::max(most, (*value.tensor() - *found->tensor()).abs().max().item<double>());
    }
    EXPECT_EQ(first.dict()->size(), second.dict()->size());
    return most;
  }

  // Trains as `ranks` ranks with `flags`, and compares with one process.
  void SameAsAlone(int ranks, const std::string& flags) {
    SCOPED_TRACE(absl::StrCat(ranks, " ranks ", flags));
    const std::string out = TrainOk(Training("shared", flags), ranks);
    EXPECT_EQ(ReadAll(Loss("shared")), ReadAll(Loss("alone")));
    EXPECT_LT(Difference("shared", "alone"), 1e-12);
    EXPECT_NE(out.find(alone_accuracy_), std::string::npos) << out;
  }

  void TrainAlone() {
    const std::string out = TrainOk(Training("alone", ""));
    const std::size_t at = out.find("test accuracy");
    ASSERT_NE(at, std::string::npos);
    alone_accuracy_ = out.substr(at, out.find('\n', at) - at);
  }

  const test::TempDir dir_;
  std::string alone_accuracy_;
};

TEST_F(MeshTest, EachDimensionAlone) {
  TrainAlone();
  for (const char* flags :
       {"--zero 1", "--zero 2 --accumulate 2", "--zero 3 --recompute", "--mesh tp=2",
        "--mesh tp=2 --recompute --accumulate 2", "--mesh dp=2", "--mesh pp=2",
        "--mesh pp=2 --recompute", "--mesh pp=2 --pipeline-schedule gpipe --micro-batches 5",
        "--mesh pp=2 --pipeline-schedule interleaved",
        "--mesh pp=2 --pipeline-schedule zero-bubble",
        "--mesh pp=2 --pipeline-cuts transformer.h.3", "--mesh tp=2 --sequence-parallel",
        "--mesh pp=2 --pipeline-driver rpc --micro-batches 5"}) {
    SameAsAlone(2, flags);
  }
}

TEST_F(MeshTest, EveryPairAndAllThree) {
  TrainAlone();
  for (const char* flags :
       {"--mesh pp=2,tp=2 --pipeline-schedule zero-bubble", "--mesh pp=2,dp=2",
        "--mesh dp=2,tp=2 --zero 1 --comm gloo", "--mesh dp=2,tp=2 --zero 2",
        "--mesh dp=2,tp=2 --zero 3 --recompute", "--mesh tp=4 --zero 3", "--mesh pp=4",
        "--mesh dp=2,tp=2 --zero 3 --sequence-parallel --comm gloo",
        "--mesh pp=2,tp=2 --sequence-parallel --recompute", "--mesh pp=4 --pipeline-driver rpc",
        "--mesh pp=2,dp=2 --pipeline-driver rpc --pipeline-schedule gpipe --recompute"}) {
    SameAsAlone(4, flags);
  }
  for (const char* flags : {"--mesh pp=2,dp=2,tp=2", "--mesh pp=2,dp=2,tp=2 --zero 0",
                            "--mesh pp=2,dp=2,tp=2 --recompute --pipeline-schedule interleaved",
                            "--mesh dp=4,tp=2 --zero 3"}) {
    SameAsAlone(8, flags);
  }
}

// The losses in a --loss-log, in the order of the steps.
std::vector<double> LossesIn(const std::string& path) {
  std::vector<double> losses;
  std::ifstream file(path);
  double step = 0;
  for (double loss = 0; file >> step >> loss;) losses.push_back(loss);
  return losses;
}

// Rounding errors grow, but within 40 steps they stay invisible in a curve.
TEST_F(MeshTest, CurvesInFloat32StayTogether) {
  const auto train = [this](const std::string& name, const std::string& flags, int ranks) {
    TrainOk(SplitWords(absl::StrCat(
                "--dataset generated --model gpt --layers 2 --heads 2 --width 32 --context 16 "
                "--vocabulary 257 --threads 1 --batch-size 16 --algorithm adamw --lr 1e-3 "
                "--max-steps 40 --no-eval --loss-log ",
                Loss(name), " ", flags)),
            ranks);
    return LossesIn(Loss(name));
  };
  const std::vector<double> alone = train("alone", "", 1);
  ASSERT_EQ(alone.size(), 40u);
  EXPECT_LT(alone.back(), 0.9 * alone.front());
  for (const char* flags : {"--mesh pp=2,tp=2 --sequence-parallel", "--mesh dp=2,tp=2 --zero 3",
                            "--mesh pp=2,dp=2 --pipeline-schedule zero-bubble"}) {
    SCOPED_TRACE(flags);
    const std::vector<double> shared = train("shared", flags, 4);
    ASSERT_EQ(shared.size(), alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) {
      EXPECT_NEAR(shared[i], alone[i], 1e-4) << "step " << i + 1;
    }
  }
}

// The number in `text` behind `label`, in MB.
double MegabytesAfter(const std::string& text, const std::string& label) {
  const std::size_t at = text.find(label);
  if (at == std::string::npos) return -1;
  std::size_t length = 0;
  const double number = std::stod(text.substr(at + label.size()), &length);
  return text.compare(at + label.size() + length, 3, " kB") == 0 ? number / 1000 : number;
}

TEST_F(MeshTest, TheTableAtTheStartForetellsWhatIsSent) {
  const struct {
    int ranks;
    const char* flags;
    int dimensions = 1;  // of more than one rank
  } kMeshes[] = {{2, "--mesh tp=2"},
                 {2, "--mesh tp=2 --sequence-parallel --recompute --comm gloo"},
                 {2, "--mesh pp=2 --pipeline-schedule interleaved"},
                 {4, "--mesh dp=2,tp=2 --zero 3 --sequence-parallel", 2},
                 {2, "--zero 3 --mesh dp=2"},
                 {2, "--mesh pp=2 --pipeline-driver rpc"},
                 // The summary showed what rank 0 sends, half as much again as the mean.
                 {4, "--mesh pp=4 --pipeline-driver rpc"},
                 {4, "--mesh pp=4"}};
  for (const auto& [ranks, flags, dimensions] : kMeshes) {
    SCOPED_TRACE(flags);
    // Without clipping and averages nothing else is exchanged in a step.
    const std::string out = TrainOk(Training("told", std::string(flags) + " --no-eval", 4), ranks);
    const std::string summary = out.substr(out.find("traffic"));
    int found = 0;
    for (const std::string name : {"pipeline", "data", "tensor"}) {
      const std::string row =
          absl::StrCat(name, ": groups of ", dimensions == 2 ? 2 : ranks, " ranks on one host, ");
      if (out.find(row) == std::string::npos) continue;
      ++found;
      EXPECT_NEAR(MegabytesAfter(out, row), MegabytesAfter(summary, name + " "), 0.001) << out;
    }
    EXPECT_EQ(found, dimensions) << out;
  }
}

// Tied embeddings are on the first and the last rank of a pipeline. The loss is the recipe's own,
// so tensor ranks gather the scores for it.
TEST_F(MeshTest, RanksThatShareAParameterKeepItEqual) {
  const auto train = [this](const std::string& name, int ranks, const std::string& flags) {
    Words words = SplitWords(
        "test/trainer/app/strategies/tied_program --context 8 --dtype float64 --threads 1 "
        "--batch-size 16 --algorithm adamw --lr 1e-3 --clip 0.5 --max-steps 8 --ema 0.9 ");
    const Words own = {"--loss-log", Loss(name), "--checkpoint", Weights(name)};
    words.insert(words.end(), own.begin(), own.end());
    const Words more = SplitWords(flags);
    words.insert(words.end(), more.begin(), more.end());
    Ranks all(words, ranks);
    EXPECT_EQ(all.Wait(), std::vector<int>(static_cast<std::size_t>(ranks))) << all.errors();
  };
  train("alone", 1, "");
  const struct {
    int ranks;
    const char* flags;
  } kMeshes[] = {{2, "--mesh pp=2"},
                 {2, "--mesh tp=2"},
                 {4, "--mesh pp=2,tp=2 --pipeline-schedule zero-bubble"},
                 {4, "--mesh pp=2,dp=2 --recompute"},
                 {2, "--zero 2"}};
  for (const auto& [ranks, flags] : kMeshes) {
    SCOPED_TRACE(flags);
    train("shared", ranks, flags);
    EXPECT_EQ(ReadAll(Loss("shared")), ReadAll(Loss("alone")));
    EXPECT_LT(Difference("shared", "alone"), 1e-12);
  }
  Words words = {"test/trainer/app/strategies/tied_program", "--zero", "3", "--max-steps", "1"};
  Ranks refused(words, 2);
  for (const int code : refused.Wait()) EXPECT_NE(code, 0);
  EXPECT_NE(refused.errors().find("two stages share transformer.wte.weight; take --zero 2"),
            std::string::npos)
      << refused.errors();
}

// The batch is smaller at the end of an epoch, and no rank may wait for a micro-batch that does not
// exist.
TEST_F(MeshTest, UnevenBatchesAtTheEndOfAnEpoch) {
  const std::string uneven =
      "--batch-size 60 --epochs 2 --max-steps 10000 --model mlp --no-eval "
      "--dataset generated --no-channels-last ";
  const auto train = [&](const std::string& name, const std::string& flags, int ranks) {
    Words words = SplitWords(uneven + flags);
    const Words own = {"--loss-log", Loss(name), "--checkpoint", Weights(name),
                       "--dtype",    "float64",  "--threads",    "1"};
    words.insert(words.end(), own.begin(), own.end());
    TrainOk(words, ranks);
  };
  train("alone", "", 1);
  for (const char* flags : {"--mesh pp=2 --micro-batches 7", "--zero 3", "--mesh pp=2,dp=2",
                            "--mesh pp=2 --micro-batches 7 --pipeline-driver rpc"}) {
    SCOPED_TRACE(flags);
    train("shared", flags, std::string(flags).find("dp") == std::string::npos ? 2 : 4);
    EXPECT_EQ(ReadAll(Loss("shared")), ReadAll(Loss("alone")));
    EXPECT_LT(Difference("shared", "alone"), 1e-12);
  }
}

TEST_F(MeshTest, CheckpointsGoFromAnyMeshToAnyOther) {
  // A cosine schedule would end with each of these runs.
  const std::string constant = " --schedule constant";
  TrainOk(Training("alone", constant, 16));
  const struct {
    int ranks;
    const char* flags;
  } kMeshes[] = {{4, "--mesh pp=2,tp=2 --checkpoint-format shards"},
                 {1, ""},
                 {2, "--zero 3"},
                 {4, "--mesh dp=2,tp=2 --checkpoint-format shards"}};
  int steps = 0;
  for (const auto& [ranks, flags] : kMeshes) {
    SCOPED_TRACE(flags);
    steps += 4;
    TrainOk(Training("moved", flags + constant + Resumable("moved"), steps), ranks);
  }
  EXPECT_EQ(ReadAll(Loss("moved")), ReadAll(Loss("alone")));
  EXPECT_LT(Difference("moved", "alone"), 1e-12);
}

TEST_F(MeshTest, ARunThatResumesOnItsMeshHasTheSameBits) {
  const std::string flags = "--mesh pp=2,tp=2 --schedule constant";
  TrainOk(Training("calm", flags, 12), 4);
  TrainOk(Training("broken", flags + Resumable("broken"), 8), 4);
  TrainOk(Training("broken", flags + Resumable("broken"), 12), 4);
  EXPECT_EQ(ReadAll(Loss("broken")), ReadAll(Loss("calm")));
  EXPECT_EQ(Difference("broken", "calm"), 0);
}

// When a rank is killed, in any dimension, the others exit and report a lost rank.
TEST_F(MeshTest, NobodyWaitsForARankThatWasKilled) {
  for (const char* mesh : {"--mesh pp=2,tp=2", "--mesh dp=2,tp=2 --zero 3", "--mesh pp=2,dp=2"}) {
    for (const int victim : {0, 3}) {
      SCOPED_TRACE(absl::StrCat(mesh, ", rank ", victim));
      BeatEar ear;
      Ranks ranks(MusterTrainWith(Training(
                      "killed", std::string(mesh) + " --timeout 20 --epochs 1000", 100'000)),
                  4, {ear.variable()});
      ASSERT_TRUE(ear.WaitForStep(3));
      ranks[victim].Signal(SIGKILL);
      const std::vector<int> codes = ranks.Wait();
      for (int rank = 0; rank < 4; ++rank) {
        const int code = codes[static_cast<std::size_t>(rank)];
        EXPECT_TRUE(rank == victim ? code == -SIGKILL : code > 0) << rank << " ended with " << code;
      }
    }
  }
}

TEST_F(MeshTest, AMistakeIsOneSentenceThatSaysWhatWouldFit) {
  const struct {
    int ranks;
    const char* flags;
    const char* sentence;
  } kMistakes[] = {
      {2, "--mesh tp=3", "--mesh: pp=1 times tp=3 is 3, which does not divide the 2 ranks"},
      {3, "--mesh tp=3",
       "the 4 attention heads of gpt cannot be shared evenly by 3 ranks; take tp=1, 2 or 4"},
      {2, "--mesh pp=2 --accumulate 2", "a pipeline has --micro-batches in place of --accumulate"},
      {2, "--mesh pp=2 --zero 2", "take --zero 1"},
      {2, "--mesh pp=2 --pipeline-schedule interleaved --micro-batches 3", "micro-batches"},
      {2, "--mesh pp=2 --pipeline-cuts transformer.h.9", "transformer.h.9"},
      {2, "--mesh pp=2 --pipeline-schedule interleaved --pipeline-chunks 9", "--pipeline-chunks 3"},
      {2, "--mesh tp=2 --micro-batches 4", "are for a pipeline of several ranks"},
      {2, "--mesh dp=2 --sequence-parallel", "is for tensor ranks: take tp=2 or more"},
      {2, "--sequence-parallel", "is for ranks that share a model: add --mesh tp=2"},
      {2, "--mesh dp=2 --pipeline-driver rpc", "is for a pipeline of several ranks: take pp=2"},
      {2, "--pipeline-driver rpc", "is for ranks that share a model: add --mesh pp=2"},
      {2, "--mesh pp=2 --pipeline-driver rpc --pipeline-schedule zero-bubble",
       "GPipe's order, and not by --pipeline-schedule zero-bubble: leave out one of the two"},
      {2, "--mesh pp=2 --pipeline-driver rpc --pipeline-chunks 2", "--pipeline-chunks says 2"},
      {2, "--mesh dp=2 --batch-size 1", "--batch-size 1 has no sample for each of 2 ranks"},
      {2, "--mesh pp=2 --sync-bn", "normalize each micro-batch by itself, and not the whole batch"},
  };
  for (const auto& [ranks, flags, sentence] : kMistakes) {
    SCOPED_TRACE(flags);
    Ranks all(MusterTrainWith(Training("wrong", flags)), ranks);
    for (const int code : all.Wait()) EXPECT_EQ(code, 2);
    EXPECT_NE(all.errors().find(sentence), std::string::npos) << all.errors();
  }
}

// 6 FLOP per matrix weight and token, plus the heads' two products.
TEST_F(MeshTest, ASampleTakesAsMuchArithmeticHoweverItIsShared) {
  constexpr double kBlocks = 4 * 12 * 16 * 16;  // of 4 layers of width 16
  constexpr double kHeads = 4 * 2 * 8 * 16;  // for a token of 8, whose heads are 16 wide together
  const std::string metrics = dir_.Path("metrics");
  const struct {
    int ranks;
    const char* flags;
    int vocabulary;  // filled up until tensor ranks can share it
  } kWays[] = {{1, "", 257},
               {2, "--mesh dp=2 --zero 3", 257},
               {2, "--mesh tp=2", 258},
               {2, "--mesh pp=2", 257}};
  for (const auto& [ranks, flags, vocabulary] : kWays) {
    std::filesystem::remove(metrics);
    TrainOk(Training("counted", absl::StrCat(flags, " --no-eval --metrics ", metrics), 3), ranks);
    const std::string last = ReadAll(metrics);
    const std::string name = "\"summary/flops_per_sample\":";
    const std::size_t at = last.find(name);
    ASSERT_NE(at, std::string::npos) << last;
    EXPECT_DOUBLE_EQ(std::stod(last.substr(at + name.size())),
                     8 * 6 * (kBlocks + kHeads + 16.0 * vocabulary))
        << flags;
  }
}

// It listened wherever the host's name resolved to.
TEST_F(MeshTest, AnInterfaceForCallsThatIsNotThereIsRefused) {
  Ranks ranks(MusterTrainWith(Training("interface", "--mesh pp=2 --pipeline-driver rpc")), 2,
              {"TP_SOCKET_IFNAME=nosuch0"});
  EXPECT_EQ(ranks.Wait(), (std::vector<int>{2, 2})) << ranks.errors();
  EXPECT_NE(ranks.errors().find(
                "TP_SOCKET_IFNAME=nosuch0: this host has no network interface of that name"),
            std::string::npos)
      << ranks.errors();
}

}  // namespace
}  // namespace muster::trainer
