// Trainings of users' models whose parameters are not each one tensor with one
// name that learns. What they come to is compared with the same computation
// written in another way.
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "test/support/temp_dir.h"
#include "test/trainer/app/ranks.h"
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
    Words arguments = {"test/trainer/recipe/own_program", name, "--dtype=float64",
                       "--batch-size=12", "--lr=0.05"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return arguments;
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

// A user tied two layers, and the optimizer took two steps with the one matrix
// they share.
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

// A user froze a part of a model: two ranks ended with SIGSEGV.
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
