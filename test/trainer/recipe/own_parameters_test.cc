// Trains users' models whose parameters are not each one learning tensor with one name. Compares
// the results with the same computation written in another way.
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "test/support/temp_dir.h"
#include "test/trainer/ranks.h"
#include "trainer/io/state_dict.h"
#include "trainer/io/torch_file.h"

namespace muster::trainer {
namespace {

using test::ReadAll;
using Words = std::vector<std::string>;

class OwnParametersTest : public testing::Test {
 protected:
  // The program of `name` with `flags`.
  static Words Program(const std::string& name, const Words& flags) {
    return test::Joined({"test/trainer/recipe/own_program", name, "--dtype=float64",
                         "--batch-size=12", "--lr=0.05"},
                        flags);
  }

  // Trains, and returns the losses of all steps as they are written.
  std::string Losses(const std::string& name, int ranks, Words flags) {
    flags.push_back("--loss-log=" + dir_.Path("losses"));
    Ranks running(Program(name, flags), ranks);
    const std::vector<int> codes = running.Wait();
    EXPECT_EQ(codes, std::vector<int>(static_cast<std::size_t>(ranks), 0))
        << name << ": " << running.errors();
    return ReadAll(dir_.Path("losses"));
  }

  // The losses of `lines`, each behind its step.
  static std::vector<double> Numbers(const std::string& lines) {
    std::vector<double> losses;
    std::istringstream in(lines);
    std::int64_t step = 0;
    for (double loss = 0; in >> step >> loss;) losses.push_back(loss);
    return losses;
  }

  // In float64: the same but for rounding.
  static void ExpectAlike(const std::vector<double>& losses, const std::vector<double>& others) {
    ASSERT_EQ(losses.size(), others.size());
    for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], others[i], 1e-7) << i;
  }

  // The state dict at `path`.
  static std::vector<NamedTensor> State(const std::string& path) {
    std::vector<NamedTensor> tensors;
    const auto file = ReadTorchFile(path);
    EXPECT_TRUE(file.ok()) << file.status();
    if (!file.ok()) return tensors;
    const auto state = FindStateDict(*file);
    EXPECT_TRUE(state.ok()) << state.status();
    if (!state.ok()) return tensors;
    for (const auto& [key, value] : *(*state)->dict()) {
      tensors.push_back({std::get<std::string>(key), *value.tensor()});
    }
    return tensors;
  }

  static at::Tensor Named(const std::vector<NamedTensor>& state, const std::string& name) {
    for (const NamedTensor& one : state) {
      if (one.name == name) return one.tensor;
    }
    ADD_FAILURE() << "there is no " << name;
    return at::zeros({});
  }

  const test::TempDir dir_;
};

// A user tied two layers, and the optimizer took two steps with the matrix they share.
TEST_F(OwnParametersTest, AParameterWithTwoNamesTakesOneStep) {
  for (const Words& flags : std::vector<Words>{{"--momentum=0.9"},
                                               {"--algorithm=adamw", "--clip=0.5"},
                                               {"--parallel=average"},
                                               {"--optimizer=reference", "--comm=gloo"}}) {
    for (const int ranks : {1, 2}) {
      SCOPED_TRACE(flags[0] + " on " + std::to_string(ranks));
      const std::string tied = Losses("tied", ranks, flags);
      EXPECT_EQ(std::count(tied.begin(), tied.end(), '\n'), 8);
      EXPECT_EQ(tied, Losses("plain", ranks, flags));
    }
  }
}

TEST_F(OwnParametersTest, ACheckpointHasBothNamesAndResumesExactly) {
  for (const std::string format : {"whole", "shards"}) {
    SCOPED_TRACE(format);
    const Words flags = {"--epochs=2", "--algorithm=adamw", "--ema=0.9",
                         "--checkpoint-format=" + format};
    Words whole = flags;
    whole.push_back("--checkpoint=" + dir_.Path("whole.pt"));
    const std::string losses = Losses("tied", 2, whole);
    Words parted = flags;
    parted.push_back("--checkpoint-dir=" + dir_.Path(format));
    parted.push_back("--checkpoint=" + dir_.Path("parted.pt"));
    parted.push_back("--max-steps=11");
    Losses("tied", 2, parted);
    parted.pop_back();
    EXPECT_EQ(Losses("tied", 2, parted), losses);
    EXPECT_EQ(ReadAll(dir_.Path("whole.pt")), ReadAll(dir_.Path("parted.pt")));
    const auto state = State(dir_.Path("whole.pt"));
    EXPECT_TRUE(Named(state, "outer.weight").equal(Named(state, "again.weight")));
  }
}

// A user froze a part of a model: two ranks crashed with SIGSEGV.
TEST_F(OwnParametersTest, FrozenParametersAreConstants) {
  const std::vector<std::pair<int, Words>> runs = {
      {1, {"--momentum=0.9", "--weight-decay=0.1"}},
      {1, {"--algorithm=adamw", "--weight-decay=0.1", "--ema=0.9", "--clip=0.1"}},
      {1, {"--on-nonfinite=skip"}},
      {1, {"--parallel=threads"}},
      {2, {"--comm=gloo"}},
      {2, {"--comm=shm", "--optimizer=reference", "--weight-decay=0.1"}},
      {2, {"--comm=gloo", "--comm-hook=fp16"}},
      {2, {"--comm=gloo", "--comm-hook=bf16"}},
      {2, {"--bucket-mb=0.001", "--first-bucket-mb=0.001", "--accumulate=2"}},
      {2, {"--no-bucket-view", "--static-graph"}},
      {2, {"--find-unused-parameters", "--ema=0.9", "--clip=0.1"}},
      {2, {"--parallel=average", "--average-every=2", "--algorithm=adamw"}},
      {3, {"--parallel=average"}}};
  for (const auto& [ranks, flags] : runs) {
    SCOPED_TRACE(flags[0] + " on " + std::to_string(ranks));
    const std::string frozen = Losses("frozen", ranks, flags);
    EXPECT_EQ(std::count(frozen.begin(), frozen.end(), '\n'), 8);
    EXPECT_EQ(frozen, Losses("constant", ranks, flags));
  }
}

TEST_F(OwnParametersTest, FrozenParametersAreSavedAndStayAsTheyWere) {
  const Words flags = {"--epochs=2", "--momentum=0.9", "--ema=0.9", "--weight-decay=0.1"};
  const auto train = [&](const std::string& file, Words more) {
    more.insert(more.end(), flags.begin(), flags.end());
    more.push_back("--checkpoint=" + dir_.Path(file));
    return Losses("frozen", 3, more);
  };
  train("one.pt", {"--max-steps=1"});
  const std::string losses = train("whole.pt", {});
  train("parted.pt", {"--checkpoint-dir=" + dir_.Path("run"), "--max-steps=5"});
  EXPECT_EQ(train("parted.pt", {"--checkpoint-dir=" + dir_.Path("run")}), losses);
  EXPECT_EQ(ReadAll(dir_.Path("whole.pt")), ReadAll(dir_.Path("parted.pt")));
  const auto first = State(dir_.Path("one.pt"));
  const auto last = State(dir_.Path("whole.pt"));
  for (const char* name : {"inner.weight", "inner.bias"}) {
    EXPECT_TRUE(Named(first, name).equal(Named(last, name))) << name;
  }
  EXPECT_FALSE(Named(first, "outer.weight").equal(Named(last, "outer.weight")));
}

// A program using the library could not have its own optimizer, schedule and groups.
TEST_F(OwnParametersTest, UpdatesOfItsOwnDoWhatTheyDoElsewhere) {
  for (const Words& flags : std::vector<Words>{{}, {"--zero=2"}, {"--zero=3"}}) {
    SCOPED_TRACE(flags.empty() ? "ddp" : flags[0]);
    Words reference = flags;
    reference.push_back("--optimizer=reference");
    EXPECT_EQ(Losses("own-optimizer", 2, flags), Losses("plain", 2, reference));
  }
  EXPECT_EQ(Losses("own-schedule", 1, {}), Losses("plain", 1, {"--lr=0.025"}));
  for (const std::string algorithm : {"sgd", "adamw"}) {
    const Words flags = {"--algorithm=" + algorithm, "--weight-decay=0.1"};
    EXPECT_EQ(Losses("own-groups", 2, flags), Losses("frozen", 2, flags)) << algorithm;
  }
}

TEST_F(OwnParametersTest, AnOptimizerOfItsOwnResumesExactly) {
  const Words flags = {"--epochs=2", "--zero=1"};
  Words whole = flags;
  whole.push_back("--checkpoint=" + dir_.Path("whole.pt"));
  const std::string losses = Losses("own-optimizer", 2, whole);
  Words parted = flags;
  parted.push_back("--checkpoint-dir=" + dir_.Path("run"));
  parted.push_back("--checkpoint=" + dir_.Path("parted.pt"));
  parted.push_back("--max-steps=11");
  Losses("own-optimizer", 2, parted);
  parted.pop_back();
  EXPECT_EQ(Losses("own-optimizer", 2, parted), losses);
  EXPECT_EQ(ReadAll(dir_.Path("whole.pt")), ReadAll(dir_.Path("parted.pt")));
}

// A batch had an input and a target, but no place for a second input or a weight.
TEST_F(OwnParametersTest, FurtherTensorsOfABatchReachTheModelAndTheLoss) {
  for (const auto& [ranks, flags] :
       std::vector<std::pair<int, Words>>{{1, {}},
                                          {1, {"--parallel=threads"}},
                                          {2, {"--accumulate=2"}},
                                          {3, {"--batch-size=10", "--zero=2"}}}) {
    SCOPED_TRACE(ranks);
    EXPECT_EQ(Losses("three-tensors", ranks, flags), Losses("plain", ranks, flags));
  }
}

// With --sync-bn the losses depended on the number of ranks as soon as these could not share a
// batch evenly: the padding of an epoch's last batch entered mean, variance and count. 96 samples
// in batches of 35 and 94 leave 26 and 2, of which a third rank has 8 and none.
TEST_F(OwnParametersTest, SyncedBatchNormalizationDoesNotDependOnTheNumberOfRanks) {
  for (const std::string size : {"35", "94"}) {
    const Words flags = {"--sync-bn", "--epochs=3", "--batch-size=" + size};
    const std::vector<double> alone = Numbers(Losses("batch-norm", 1, flags));
    for (const auto& [ranks, more] : std::vector<std::pair<int, Words>>{
             {2, {}}, {3, {}}, {3, {"--recompute"}}, {3, {"--zero=1"}}, {3, {"--zero=3"}}}) {
      SCOPED_TRACE(size + " on " + std::to_string(ranks) + (more.empty() ? "" : more[0]));
      Words all = test::Joined(flags, more);
      ExpectAlike(Numbers(Losses("batch-norm", ranks, all)), alone);
    }
  }
}

// "--batch-size 7 cannot be shared evenly by 2 ranks".
TEST_F(OwnParametersTest, ABatchNeedNotBeAMultipleOfTheRanks) {
  const std::vector<double> alone = Numbers(Losses("plain", 1, {"--batch-size=7", "--epochs=2"}));
  EXPECT_EQ(alone.size(), 28u);
  for (const auto& [ranks, more] : std::vector<std::pair<int, Words>>{
           {2, {}}, {3, {"--accumulate=2"}}, {3, {"--zero=2"}}, {4, {}}}) {
    SCOPED_TRACE(std::to_string(ranks) + (more.empty() ? "" : more[0]));
    Words flags = test::Joined({"--batch-size=7", "--epochs=2"}, more);
    ExpectAlike(Numbers(Losses("plain", ranks, flags)), alone);
  }
}

TEST_F(OwnParametersTest, AModelThatCannotLearnIsRefused) {
  for (const std::string name : {"all-frozen", "empty"}) {
    for (const int ranks : {1, 2}) {
      SCOPED_TRACE(name + " on " + std::to_string(ranks));
      Ranks running(Program(name, {}), ranks);
      EXPECT_EQ(running.Wait(), std::vector<int>(static_cast<std::size_t>(ranks), 2));
      const std::string errors = running.errors();
      EXPECT_NE(errors.find("none of the model's " + std::string(name == "empty" ? "0" : "6") +
                            " parameters requires a gradient"),
                std::string::npos)
          << errors;
      EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), ranks) << errors;
    }
  }
}

}  // namespace
}  // namespace muster::trainer
