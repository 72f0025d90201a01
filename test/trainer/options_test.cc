#include "trainer/app/options.h"

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

absl::StatusOr<Options> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "muster-train");
  return ParseOptions(static_cast<int>(arguments.size()), arguments.data());
}

TEST(OptionsTest, NothingGivenMeansTheDefaults) {
  const absl::StatusOr<Options> options = Parse({});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->data_dir, "/usr/share/datasets/fashion-mnist");
  EXPECT_EQ(options->checkpoint, "muster-train.pt");
  EXPECT_EQ(options->dataset, DatasetKind::kIdx);
  EXPECT_EQ(options->model, ModelKind::kCnn);
  EXPECT_EQ(options->comm, Comm::kAuto);
  EXPECT_TRUE(options->evaluate);
  EXPECT_TRUE(options->help.empty());
}

TEST(OptionsTest, EachFlagReachesItsOption) {
  const absl::StatusOr<Options> options = Parse({"--data=/d", "--dataset",  "generated",
                                                 "--model",   "mlp",        "--dtype",
                                                 "float64",   "--epochs",   "3",
                                                 "--lr",      "0.1",        "--batch-size",
                                                 "64",        "--momentum", "0.5",
                                                 "--seed",    "7",          "--max-steps",
                                                 "12",        "--no-eval",  "--checkpoint",
                                                 "c.pt",      "--loss-log", "l",
                                                 "--comm",    "gloo",       "--timeout",
                                                 "9",         "--threads",  "2"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->data_dir, "/d");
  EXPECT_EQ(options->dataset, DatasetKind::kGenerated);
  EXPECT_EQ(options->model, ModelKind::kMlp);
  EXPECT_EQ(options->dtype, at::kDouble);
  EXPECT_EQ(options->epochs, 3);
  EXPECT_EQ(options->learning_rate, 0.1);
  EXPECT_EQ(options->batch_size, 64);
  EXPECT_EQ(options->momentum, 0.5);
  EXPECT_EQ(options->seed, 7u);
  EXPECT_EQ(options->max_steps, 12);
  EXPECT_FALSE(options->evaluate);
  EXPECT_EQ(options->checkpoint, "c.pt");
  EXPECT_EQ(options->loss_log, "l");
  EXPECT_EQ(options->comm, Comm::kGloo);
  EXPECT_EQ(options->timeout, std::chrono::seconds(9));
  EXPECT_EQ(options->threads, 2);
}

TEST(OptionsTest, HelpIsTextAndNoMistake) {
  const absl::StatusOr<Options> options = Parse({"--help"});
  ASSERT_TRUE(options.ok()) << options.status();
  for (const char* flag : {"--data ", "--dataset", "--model", "--epochs", "--batch-size", "--lr",
                           "--momentum", "--seed", "--max-steps", "--eval", "--checkpoint",
                           "--loss-log", "--comm", "--timeout", "--threads", "--dtype"}) {
    EXPECT_NE(options->help.find(flag), std::string::npos) << flag;
  }
}

TEST(OptionsTest, AMistakeIsOneSentenceThatNamesTheFlag) {
  const std::vector<std::vector<const char*>> mistakes = {
      {"--bogus"},           {"--epochs", "0"},   {"--epochs", "many"}, {"--batch-size", "0"},
      {"--lr", "-1"},        {"--momentum", "2"}, {"--model", "gpt"},   {"--dataset", "cifar"},
      {"--comm", "mpi"},     {"--timeout", "0"},  {"--threads", "-1"},  {"--checkpoint", ""},
      {"--max-steps", "-1"}, {"--seed", "x"},     {"--dtype", "int8"},
  };
  for (const std::vector<const char*>& arguments : mistakes) {
    const absl::Status status = Parse(arguments).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << arguments[0];
    const std::string message(status.message());
    EXPECT_NE(message.find(arguments[0]), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(OptionsTest, TheRanksMustShareTheBatchEvenly) {
  Options options;
  options.batch_size = 250;
  EXPECT_TRUE(CheckBatchSize(options, 1).ok());
  EXPECT_TRUE(CheckBatchSize(options, 5).ok());
  EXPECT_EQ(CheckBatchSize(options, 4).message(),
            "--batch-size 250 cannot be shared evenly by 4 ranks");
}

}  // namespace
}  // namespace muster::trainer
