// Compares every model with the same module in Python, created with the same seed: the parameters
// bit for bit, and the results in float64. The modules are in testdata/models.py.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "test/trainer/models/python.h"
#include "test/trainer/program.h"
#include "trainer/models/gpt.h"
#include "trainer/models/image_models.h"
#include "trainer/models/model.h"

namespace muster::trainer {
namespace {

constexpr char kSeed[] = "4294967301";  // more than 32 bits

struct Case {
  std::string name;  // in models.py
  ModelRecipe recipe;
  DataShape shape = {};
};

std::vector<Case> Cases() {
  const DataShape text = {.kind = DataShape::Kind::kText, .classes = 256, .context = 32};
  return {
      {"cnn", CnnRecipe()},
      {"cnn-cifar", CnnRecipe(), {.channels = 3, .height = 32, .width = 32}},
      {"mlp", MlpRecipe("mlp", {256, 256})},
      {"mlp-large", MlpRecipe("mlp-large", {4096, 4096, 1024})},
      {"resnet18", ResNet18Recipe()},
      {"resnet18-cifar",
       ResNet18Recipe(),
       {.channels = 3, .height = 32, .width = 32, .classes = 100}},
      {"resnet18-imagenet",
       ResNet18Recipe("imagenet"),
       {.channels = 3, .height = 64, .width = 64, .classes = 1000}},
      {"gpt", GptRecipe({.layers = 3, .heads = 4, .width = 48}), text},
      {"gpt-tied", GptRecipe({.layers = 2, .heads = 2, .width = 32, .tie_weights = true}), text},
  };
}

// The largest difference, relative to the largest number.
double Difference(const at::Tensor& ours, const at::Tensor& pythons) {
  if (ours.sizes() != pythons.sizes()) return INFINITY;
  const double scale = pythons.abs().max().item<double>();
  return (ours - pythons).abs().max().item<double>() / std::max(scale, 1e-300);
}

class ModelPythonTest : public testing::TestWithParam<Case> {
 protected:
  // Asks Python about all of them at once, as it takes longer to start than to compute.
  static void SetUpTestSuite() {
    if (!PythonHasTorch()) return;
    std::vector<std::string> arguments = {kSeed, TestFile("model-")};
    for (const Case& item : Cases()) arguments.push_back(item.name);
    RunPython("test/trainer/models/testdata/models.py", arguments);
  }
};

TEST_P(ModelPythonTest, IsPythonsBitForBitAndComputesTheSame) {
  if (!PythonHasTorch()) GTEST_SKIP() << "needs Debian's python3-torch";
  const std::vector<NamedTensor> python = ReadTensors(TestFile("model-" + GetParam().name));

  auto made = MakeModel(GetParam().recipe, GetParam().shape, {.seed = std::stoull(kSeed)});
  ASSERT_TRUE(made.ok()) << made.status();
  Model& model = **made;

  // Names, order and values.
  const std::vector<NamedTensor> state = model.StateDict();
  std::size_t entry = 0;
  for (const NamedTensor& theirs : python) {
    if (theirs.name.rfind("state:", 0) != 0) break;
    ASSERT_LT(entry, state.size());
    EXPECT_EQ("state:" + state[entry].name, theirs.name);
    EXPECT_EQ(state[entry].tensor.scalar_type(), theirs.tensor.scalar_type());
    EXPECT_TRUE(state[entry].tensor.equal(theirs.tensor)) << theirs.name;
    ++entry;
  }
  EXPECT_EQ(entry, state.size());

  model.MoveTo(at::kCPU, at::kDouble);
  const at::Tensor input = Find(python, "input");
  const at::Tensor scores = model.Forward(input);
  EXPECT_LT(Difference(scores, Find(python, "train")), 1e-12);
  scores.square().sum().backward();
  for (const NamedTensor& parameter : model.Parameters()) {
    EXPECT_LT(Difference(parameter.tensor.grad(), Find(python, "grad:" + parameter.name)), 1e-11)
        << parameter.name;
  }
  for (const NamedTensor& buffer : model.Buffers()) {
    EXPECT_LT(Difference(buffer.tensor, Find(python, "after:" + buffer.name)), 1e-12)
        << buffer.name;
  }
  model.SetTraining(false);
  EXPECT_LT(Difference(model.Forward(input), Find(python, "eval")), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Models, ModelPythonTest, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<Case>& info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace muster::trainer
