// muster-train --qat from outside, in one process and in several.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "test/support/temp_dir.h"
#include "test/trainer/program.h"
#include "test/trainer/ranks.h"
#include "trainer/io/state_dict.h"
#include "trainer/io/torch_file.h"
#include "trainer/quant/qat_options.h"

namespace muster::trainer {
namespace {

constexpr std::chrono::seconds kDeadline(120);

// How much accuracy 8-bit numbers may lose, in percent: without VNNI, processors lose precision
// when they sum products.
double MostLost() {
  return __builtin_cpu_supports("avx512vnni") != 0 ? 2 : 100;
}

class QatTrainTest : public testing::Test {
 protected:
  static std::vector<std::string> Training(const std::vector<std::string>& more) {
    return test::Joined({"--dataset", "generated", "--model", "mlp", "--qat"}, more);
  }

  // The number behind the last `label` in `text`.
  static double NumberAfter(const std::string& text, const std::string& label) {
    const std::size_t at = text.rfind(label);
    EXPECT_NE(at, std::string::npos) << label << " in " << text;
    return at == std::string::npos ? -1 : std::stod(text.substr(at + label.size()));
  }

  Dict StateIn(const std::string& path) const {
    const auto value = ReadTorchFile(path);
    EXPECT_TRUE(value.ok() && value->dict() != nullptr) << value.status();
    return *value->dict();
  }

  const test::TempDir dir_;
};

TEST_F(QatTrainTest, RanksObserveWhatOneProcessWould) {
  for (const char* comm : {"gloo", "shm"}) {
    for (const int ranks : {1, 2, 3}) {
      SCOPED_TRACE(std::string(comm) + " " + std::to_string(ranks));
      RunRanks({"test/trainer/quant/qat_rank_program", comm}, ranks, kDeadline);
    }
  }
}

TEST_F(QatTrainTest, TwoRanksOfALauncherEndWithAnInt8Network) {
  for (const char* model : {"mlp", "cnn"}) {
    SCOPED_TRACE(model);
    // Ranges follow by a hundredth in each step: too slowly for so few, if weights were still new.
    const std::string floats = dir_.Path("float.pt");
    TrainOk({"--dataset", "generated", "--model", model, "--epochs", "3", "--checkpoint", floats});
    Program program({"launcher/muster", "run", "-n", "2", "--standalone", "--no-python",
                     MusterTrain(), "--dataset", "generated", "--model", model, "--qat",
                     "--init-from", floats, "--epochs", "3", "--profile"},
                    {});
    ASSERT_EQ(program.Wait(kDeadline), 0) << program.errors();
    const std::string& output = program.output();
    const double rounded = NumberAfter(output, "test accuracy  ");
    const double int8 = NumberAfter(output, "int8 accuracy  ");
    EXPECT_GE(rounded, 95) << output;
    EXPECT_NEAR(int8, rounded, MostLost()) << output;
    for (const int epoch : {1, 2, 3}) {
      const std::size_t line = output.find("epoch " + std::to_string(epoch) + "/3: test accuracy");
      ASSERT_NE(line, std::string::npos) << output;
      const std::string text = output.substr(line, output.find('\n', line) - line);
      EXPECT_NE(text.find(" %, int8 accuracy "), std::string::npos) << text;
    }
    EXPECT_NE(output.find(" (fake-quantized)\n"), std::string::npos) << output;
    EXPECT_NE(output.find("int8: weights of "), std::string::npos) << output;
  }
}

// In the middle of the second epoch, whose ranges move on with every step.
TEST_F(QatTrainTest, ResumesBitForBit) {
  const auto run = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> arguments =
        test::Joined(Training({"--epochs", "3", "--checkpoint", dir_.Path(name + ".pt"),
                               "--loss-log", dir_.Path(name + ".log")}),
                     more);
    TrainOk(arguments, /*world_size=*/2);
  };
  run("whole", {});
  run("parts",
      {"--checkpoint-dir", dir_.Path("ckpt"), "--checkpoint-every", "5", "--max-steps", "23"});
  run("parts", {"--checkpoint-dir", dir_.Path("ckpt"), "--checkpoint-every", "5"});
  const Dict whole = StateIn(dir_.Path("whole.pt"));
  const Dict parts = StateIn(dir_.Path("parts.pt"));
  ASSERT_EQ(whole.size(), parts.size());
  auto other = parts.begin();
  for (const auto& [name, value] : whole) {
    EXPECT_EQ(std::get<std::string>(name), std::get<std::string>(other->first));
    EXPECT_TRUE(value.tensor()->equal(*other->second.tensor())) << std::get<std::string>(name);
    ++other;
  }
}

TEST_F(QatTrainTest, BeginsWithParametersOfAFloatTraining) {
  const std::string floats = dir_.Path("float.pt");
  TrainOk({"--dataset", "generated", "--model", "mlp", "--epochs", "2", "--checkpoint", floats});
  const std::string output = TrainOk(Training({"--init-from", floats, "--max-steps", "2", "--lr",
                                               "1e-30", "--checkpoint", dir_.Path("qat.pt")}),
                                     2);
  EXPECT_NE(output.find("float.pt: All keys matched successfully"), std::string::npos) << output;
  EXPECT_GE(NumberAfter(output, "int8 accuracy  "), 97 - MostLost()) << output;
  const Value before(StateIn(floats));
  for (const auto& [name, value] : StateIn(dir_.Path("qat.pt"))) {
    if (IsOfFakeQuantize(std::get<std::string>(name))) continue;
    const Value* const old = before.Find(std::get<std::string>(name));
    ASSERT_NE(old, nullptr) << std::get<std::string>(name);
    EXPECT_TRUE(value.tensor()->equal(*old->tensor())) << std::get<std::string>(name);
  }
}

// Batch normalization is folded, and blocks add up two branches.
TEST_F(QatTrainTest, ResNet18GoesThroughAllOfIt) {
  const std::vector<std::string> tiny = {"--dataset", "generated", "--model",      "resnet18",
                                         "--stem",    "imagenet",  "--batch-size", "32"};
  const auto train = [&](std::vector<std::string> more) {
    more.insert(more.begin(), tiny.begin(), tiny.end());
    return TrainOk(more, /*world_size=*/2);
  };
  const std::string floats = dir_.Path("float.pt");
  train({"--max-steps", "10", "--checkpoint", floats});
  const auto qat = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> arguments =
        test::Joined({"--qat", "--init-from", floats, "--epochs", "2", "--qat-observe-epochs", "0",
                      "--checkpoint", dir_.Path(name + ".pt")},
                     more);
    return train(arguments);
  };
  const std::string output = qat("whole", {"--max-steps", "6"});
  EXPECT_NE(output.find("float.pt: All keys matched successfully"), std::string::npos) << output;
  EXPECT_NEAR(NumberAfter(output, "int8 accuracy  "), NumberAfter(output, "test accuracy  "),
              2 * MostLost())
      << output;

  const std::string checkpoints = dir_.Path("ckpt");
  qat("parts", {"--checkpoint-dir", checkpoints, "--max-steps", "3"});
  qat("parts", {"--checkpoint-dir", checkpoints, "--max-steps", "6"});
  const Value whole(StateIn(dir_.Path("whole.pt")));
  for (const auto& [name, value] : StateIn(dir_.Path("parts.pt"))) {
    const Value* const other = whole.Find(std::get<std::string>(name));
    ASSERT_NE(other, nullptr) << std::get<std::string>(name);
    EXPECT_TRUE(value.tensor()->equal(*other->tensor())) << std::get<std::string>(name);
  }

  Program eval({MusterTrain(), "eval", "--checkpoint", checkpoints}, {});
  ASSERT_EQ(eval.Wait(kDeadline), 0) << eval.errors();
  EXPECT_EQ(NumberAfter(eval.output(), "accuracy"), NumberAfter(output, "test accuracy  "))
      << eval.output() << output;
  Program predict({MusterTrain(), "predict", "--checkpoint", checkpoints}, {});
  ASSERT_EQ(predict.Wait(kDeadline), 0) << predict.errors();
  EXPECT_EQ(predict.output().find("{\"index\":0,\"label\":"), 0u) << predict.output();
}

TEST_F(QatTrainTest, EvaluatesItsCheckpointAsItWasTested) {
  const std::string output =
      TrainOk(Training({"--epochs", "2", "--checkpoint-dir", dir_.Path("ckpt")}));
  Program eval({MusterTrain(), "eval", "--checkpoint", dir_.Path("ckpt")}, {});
  ASSERT_EQ(eval.Wait(kDeadline), 0) << eval.errors();
  EXPECT_EQ(NumberAfter(eval.output(), "accuracy"), NumberAfter(output, "test accuracy  "))
      << eval.output() << output;
}

TEST_F(QatTrainTest, RefusesWhatItDoesNotCombineWith) {
  const struct {
    std::vector<std::string> flags;
    std::string sentence;
  } cases[] = {
      {{"--model", "gpt"}, "--qat cannot quantize gpt; it can quantize cnn, mlp"},
      {{"--parallel", "average"}, "--qat and --parallel average or threads do not go together"},
      {{"--parallel", "threads"}, "--qat and --parallel average or threads do not go together"},
      {{"--mesh", "dp=2"}, "--qat and --mesh do not go together: leave one out"},
      {{"--zero", "1"}, "--qat and --zero do not go together: leave one out"},
      {{"--sync-bn"}, "--qat and --sync-bn do not go together: leave one out"},
      {{"--bf16"}, "--qat and --bf16 do not go together: leave one out"},
      {{"--fp16"}, "--qat and --fp16 do not go together: leave one out"},
      {{"--loss-scale", "8"}, "--qat and --loss-scale do not go together: leave one out"},
      {{"--ema", "0.9"}, "--qat and --ema do not go together: leave one out"},
      {{"--recompute"}, "--qat and --recompute do not go together: leave one out"},
      {{"--dtype", "float64"}, "--qat and --dtype float64 do not go together: leave one out"},
  };
  for (const auto& [flags, sentence] : cases) {
    SCOPED_TRACE(sentence);
    std::vector<std::string> arguments = Training(flags);
    arguments.insert(arguments.begin(), MusterTrain());
    Program program(arguments, {});
    EXPECT_EQ(program.Wait(kDeadline), 2);
    const std::string errors = program.errors();
    EXPECT_NE(errors.find(sentence), std::string::npos) << errors;
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
  }
}

TEST_F(QatTrainTest, RefusesToResumeWithoutIt) {
  TrainOk(Training({"--max-steps", "2", "--checkpoint-dir", dir_.Path("ckpt")}));
  Program program({MusterTrain(), "--dataset", "generated", "--model", "mlp", "--checkpoint-dir",
                   dir_.Path("ckpt")},
                  {});
  EXPECT_EQ(program.Wait(kDeadline), 2);
  EXPECT_NE(program.errors().find("it was made with --qat"), std::string::npos) << program.errors();
}

}  // namespace
}  // namespace muster::trainer
