// Trainings of users' models whose parameters are not each one tensor with one name that learns.
// What they come to is compared with the same computation written in another way.
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

// A user tied two layers, and the optimizer took two steps with the one matrix they share.
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

}  // namespace
}  // namespace muster::trainer
