#include "trainer/app/options/options.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "trainer/app/options/idle_flags.h"
#include "trainer/app/options/settings.h"

namespace muster::trainer {
namespace {

absl::StatusOr<Options> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "muster-train");
  return ParseOptions(static_cast<int>(arguments.size()), arguments.data());
}

// A program of a recipe whose flags are added by `add`. Nothing here opens its data or creates its
// model.
Registry OwnRegistry(const std::function<void(FlagSet& flags)>& add) {
  Recipe recipe;
  recipe.data = [](const DataOptions&) { return absl::UnimplementedError("no data"); };
  recipe.model = [](const DataShape&) { return absl::UnimplementedError("no model"); };
  recipe.flags = add;
  return RegistryOf(recipe, "own").value();
}

TEST(OptionsTest, NothingGivenMeansTheDefaults) {
  const absl::StatusOr<Options> options = Parse({});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->data.paths, std::vector<std::string>{"/usr/share/datasets/fashion-mnist"});
  EXPECT_EQ(options->checkpoint.final_path, "");
  EXPECT_EQ(options->data_set.name, "idx");
  EXPECT_EQ(options->model.name, "cnn");
  EXPECT_EQ(options->parallel.comm, Comm::kAuto);
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
  EXPECT_EQ(options->data.paths, std::vector<std::string>{"/d"});
  EXPECT_EQ(options->data_set.title, "generated images");
  EXPECT_EQ(options->model.name, "mlp");
  EXPECT_EQ(options->dtype, at::kDouble);
  EXPECT_EQ(options->epochs, 3);
  EXPECT_EQ(options->schedule.learning_rate, 0.1);
  EXPECT_EQ(options->batch_size, 64);
  EXPECT_EQ(options->optimizer.momentum, 0.5);
  EXPECT_EQ(options->seed, 7u);
  EXPECT_EQ(options->max_steps, 12);
  EXPECT_FALSE(options->evaluate);
  EXPECT_EQ(options->checkpoint.final_path, "c.pt");
  EXPECT_EQ(options->report.loss_log, "l");
  EXPECT_EQ(options->parallel.comm, Comm::kGloo);
  EXPECT_EQ(options->parallel.timeout, std::chrono::seconds(9));
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

TEST(OptionsTest, TheVersionIsTextAndNoMistake) {
  EXPECT_EQ(Parse({"--version"})->help.rfind("muster-train ", 0), 0u);
}

TEST(OptionsTest, AMistakeIsOneSentenceThatNamesTheFlag) {
  const std::vector<std::vector<const char*>> mistakes = {
      {"--bogus"},           {"--epochs", "0"},   {"--epochs", "many"}, {"--batch-size", "0"},
      {"--lr", "-1"},        {"--momentum", "2"}, {"--model", "vgg"},   {"--dataset", "cifar"},
      {"--comm", "mpi"},     {"--timeout", "0"},  {"--threads", "-1"},  {"--resume", ""},
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

// `--lr abc` was "not in range 0.000000 to 1000000.000000".
TEST(OptionsTest, ANumberThatIsNoneIsNamedWithWhatWouldBeOne) {
  const std::pair<std::vector<const char*>, std::string> mistakes[] = {
      {{"--lr", "abc"}, "--lr: 'abc' is not a number from 0 to 1000000"},
      {{"--lr", "-1"}, "--lr: '-1' is not a number from 0 to 1000000"},
      {{"--bucket-mb", "0"}, "--bucket-mb: '0' is not a number from 0.001 to 1000000"},
      {{"--loader-threads", "1.5"}, "--loader-threads: '1.5' is not a whole number from 0 to 256"},
      {{"--average-every", "0"}, "--average-every: '0' is not a whole number of at least 1"},
      {{"--seed", "x"}, "--seed: 'x' is not a whole number of at least 0"},
  };
  for (const auto& [arguments, sentence] : mistakes) {
    EXPECT_EQ(Parse(arguments).status().message(), sentence + "; --help lists the flags");
  }
}

TEST(OptionsTest, HelpShowsEachGroupAndEachDefault) {
  const absl::StatusOr<Options> options = Parse({"--help"});
  ASSERT_TRUE(options.ok()) << options.status();
  for (const char* group :
       {"Data:", "Model:", "Training:", "Optimizer:", "Ranks:", "Checkpoints:", "Reports:"}) {
    EXPECT_NE(options->help.find(group), std::string::npos) << group;
  }
  std::istringstream lines(options->help);
  for (std::string line; std::getline(lines, line);) {
    const bool flag = line.rfind("  --", 0) == 0;
    if (!flag || line.find("--config") != std::string::npos) continue;
    if (line.find("--version") != std::string::npos) continue;
    // Behind the flag, "=cnn"; or behind what a switch does, "[off]", which may be the next line.
    if (line.find('=') != std::string::npos) continue;
    if (line.find('[') == std::string::npos) {
      ASSERT_TRUE(std::getline(lines, line));
    }
    EXPECT_NE(line.find('['), std::string::npos) << line;
  }
}

std::string ValueOf(const Options& options, const std::string& flag) {
  for (const Setting& setting : options.settings) {
    if (setting.flag == flag) return setting.value;
  }
  return "no such flag";
}

TEST(OptionsTest, EachFlagTellsWhatItStandsAt) {
  const absl::StatusOr<Options> options =
      Parse({"--lr", "1e-1", "--flip", "--no-eval", "--model", "mlp-large", "--dtype", "float64",
             "--seed", "18446744073709551615", "--export", "m.safetensors", "--timeout", "9"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(ValueOf(*options, "--lr"), "0.1");
  EXPECT_EQ(ValueOf(*options, "--flip"), "true");
  EXPECT_EQ(ValueOf(*options, "--eval"), "false");
  EXPECT_EQ(ValueOf(*options, "--model"), "mlp-large");
  EXPECT_EQ(ValueOf(*options, "--dtype"), "float64");
  EXPECT_EQ(ValueOf(*options, "--seed"), "18446744073709551615");
  EXPECT_EQ(ValueOf(*options, "--export"), "m.safetensors");
  EXPECT_EQ(ValueOf(*options, "--timeout"), "9");
  EXPECT_EQ(ValueOf(*options, "--loss-log"), "");
  EXPECT_EQ(ValueOf(*options, "--momentum"), "0.9");
  EXPECT_EQ(ValueOf(*Parse({"--model", "gpt", "--data", "t"}), "--dataset"), "text");
  EXPECT_EQ(ValueOf(*Parse({"--model", "gpt", "--dataset", "generated"}), "--dataset"),
            "generated");
}

TEST(OptionsTest, NoFlagOfTheHelpIsLeftOutOfTheSettings) {
  const absl::StatusOr<Options> options = Parse({});
  std::istringstream lines(Parse({"--help"})->help);
  int flags = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("  --", 0) != 0 || line.rfind("  --config", 0) == 0) continue;
    if (line.rfind("  --version", 0) == 0) continue;
    const std::string flag = line.substr(2, line.find_first_of(" ,=", 4) - 2);
    EXPECT_NE(ValueOf(*options, flag), "no such flag") << flag;
    ++flags;
  }
  EXPECT_EQ(static_cast<std::size_t>(flags), options->settings.size());
}

TEST(OptionsTest, AFlagThatIsGivenTwiceMeansWhatWasSaidLast) {
  const absl::StatusOr<Options> options = Parse({"--epochs", "3", "--no-eval", "--model", "mlp",
                                                 "--epochs", "5", "--eval", "--model", "cnn"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->epochs, 5);
  EXPECT_TRUE(options->evaluate);
  EXPECT_EQ(options->model.name, "cnn");
}

class ConfigTest : public testing::Test {
 protected:
  std::string Write(const std::string& text) const {
    const std::string path = testing::TempDir() + "/train.toml";
    std::ofstream{path} << text;
    return path;
  }
};

TEST_F(ConfigTest, AFileGivesWhatTheCommandLineDoesNot) {
  const std::string path =
      Write("epochs = 3\nmodel = \"mlp\"\nlr = 0.5\neval = false\ncheckpoint-dir = \"here\"\n");
  const absl::StatusOr<Options> options = Parse({"--config", path.c_str(), "--lr", "0.25"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->epochs, 3);
  EXPECT_EQ(options->model.name, "mlp");
  EXPECT_EQ(options->schedule.learning_rate, 0.25) << "the command line wins";
  EXPECT_FALSE(options->evaluate);
  EXPECT_EQ(options->checkpoint.directory, "here");
}

// "INI was not able to parse learning_rate".
TEST_F(ConfigTest, AKeyThatIsNotThereHasALineAndASuggestion) {
  const std::string path = Write("# fast\nepochs = 3\n\nlearning_rate = 0.1\n");
  EXPECT_EQ(Parse({"--config", path.c_str()}).status().message(),
            "--config " + path +
                ", line 4: there is no flag learning_rate; did you mean lr? "
                "--help lists the flags");
  const std::string section = Write("[optimizer]\nlr = 0.1\n");
  EXPECT_EQ(Parse({"--config", section.c_str()}).status().message(),
            "--config " + section +
                ", line 2: flags stand in no section; leave [optimizer] out; "
                "--help lists the flags");
}

// The file of a run has every flag, including those without effect.
TEST_F(ConfigTest, AFlagAtItsDefaultInAFileIsNotNamed) {
  const auto said = [&](const std::string& text) {
    const std::string path = Write(text);
    return FlagsWithoutEffect(*Parse({"--config", path.c_str()}), {{"--config", "--config"}},
                              {.ranks = 2, .stages = 5, .steps = 9});
  };
  EXPECT_EQ(said("algorithm = \"adamw\"\nmomentum = 0.9\n"), std::vector<std::string>());
  EXPECT_EQ(said("algorithm = \"adamw\"\nmomentum = 0.8\n").size(), 1u);
}

TEST_F(ConfigTest, AMistakeInTheFileIsOneSentence) {
  for (const char* text : {"epoch = 3\n", "epochs = many\n", "model = \"vgg\"\n"}) {
    const absl::Status status = Parse({"--config", Write(text).c_str()}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(status.message().find('\n'), absl::string_view::npos) << status;
  }
}

// A decimal comma turned 0,001 into 1, and of two values the last was taken.
TEST_F(ConfigTest, AFlagThatTakesOneValueIsNotGivenTwo) {
  for (const char* text : {"lr = 0,001\n", "lr = 0.1 0.2\n", "lr = [0.1, 0.2]\n"}) {
    const absl::Status status = Parse({"--config", Write(text).c_str()}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(status.message().find("--config: lr takes one value, not 0"), absl::string_view::npos)
        << status;
  }
}

TEST_F(ConfigTest, AByteOrderMarkIsNoPartOfTheFirstFlag) {
  const auto options = Parse({"--config", Write("\xef\xbb\xbflr = 0.5\n").c_str()});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->schedule.learning_rate, 0.5);
}

// All flags, given on the line or not; with paths that are hard to quote.
TEST_F(ConfigTest, TheFileThatARunLeavesGivesItsOptionsAgain) {
  const std::vector<std::vector<const char*>> lines = {
      {},
      {"--model", "gpt", "--dataset", "generated", "--heads", "8", "--lr", "3e-4", "--algorithm",
       "adamw", "--bf16", "--no-eval", "--clip", "0.1", "--seed", "18446744073709551615"},
      {"--model", "mlp-large", "--no-channels-last", "--no-decay-vectors", "--resume", "none",
       "--checkpoint-dir", "a b, c #1 = d", "--loss-log", "it's", "--metrics", "[m]", "--trace",
       "say \"x\"", "--tensorboard", "true", "--export", "12"},
      {"--dataset", "text", "--data", "a, b", "--data", "it's", "--test-data", "c"},
  };
  for (const std::vector<const char*>& line : lines) {
    const absl::StatusOr<Options> first = Parse(line);
    ASSERT_TRUE(first.ok()) << first.status();
    const std::string path = Write(ConfigText(first->settings, first->program));
    const absl::StatusOr<Options> again = Parse({"--config", path.c_str()});
    ASSERT_TRUE(again.ok()) << again.status();
    ASSERT_EQ(again->settings.size(), first->settings.size());
    for (const Setting& setting : first->settings) {
      EXPECT_EQ(ValueOf(*again, setting.flag), setting.value) << setting.flag;
    }
  }
}

TEST_F(ConfigTest, AValueIsWrittenAsItIsEasiestToRead) {
  const std::string text = ConfigText({{"Data", "--data", "a\nb c", "", /*list=*/true},
                                       {"Data", "--flip", "false", "false"},
                                       {"Model", "--note", "it's \"it\"", ""},
                                       {"Model", "--path", "C:\\d", ""},
                                       {"Reports", "--trace", "", ""},
                                       {"Reports", "--loss-log", "", "there"},
                                       {"Reports", "--profile", "true", "false"}},
                                      "muster-train");
  EXPECT_EQ(text,
            "# The options of a run of muster-train, for --config.\n"
            "\n# Data\ndata = [\"a\", \"b c\"]\nflip = false\n"
            "\n# Model\nnote = \"it's \\\"it\\\"\"\npath = 'C:\\d'\n"
            "\n# Reports\nloss-log = \"\"\nprofile = true\n");
}

// An empty text, one with both kinds of quotes and one of several lines were lost.
TEST_F(ConfigTest, AnyTextIsReadAsItWasWritten) {
  std::string note;
  const Registry registry = OwnRegistry([&note](FlagSet& flags) {
    note = "not empty";
    flags.Text("--note", note, "Any text");
  });
  std::vector<std::string> texts = {
      "",        " ",      " a ",     "it's",     "\"",       "'",        "''",     "\"\"",
      "it's \"", "'\" '",  "\\",      "\\\\",     "a\\",      "a\\'",     "a\\\"'", "\\n",
      "\n",      "a\nb",   "\na\n",   "a\r\nb",   "\t",       "#",        "a #b",   "\"a\" # 'b'",
      "[",       "]",      "[a, b]",  "[\"a\"]",  "a, b",     ",",        "a=b",    "=",
      ";",       "; a",    "true",    " true",    "12",       " 12",      "1e5",    "nan",
      "0x10",    "{}",     "%%",      "Käse € 😀", "\x01",     "\0010",    "\x7f",   "\\u0041",
      "--help",  "a' # b", "a\", 'b", "'a', 'b'", "[a]\n[b]", "\xff\xfe", "`a b`",  "a' 'b"};
  // All short texts that are hard to parse.
  const std::string letters = "'\"\\#,\n";
  for (const char a : letters) {
    for (const char b : letters) {
      for (const char c : letters) texts.push_back({a, b, c});
    }
  }
  for (const std::string& text : texts) {
    const char* given[] = {"own", "--note", text.c_str()};
    const absl::StatusOr<Options> first = ParseOptions(3, given, registry);
    ASSERT_TRUE(first.ok()) << first.status();
    ASSERT_EQ(note, text);
    const std::string file = ConfigText(first->settings, first->program);
    const std::string path = Write(file);
    const char* read[] = {"own", "--config", path.c_str()};
    const absl::StatusOr<Options> again = ParseOptions(3, read, registry);
    ASSERT_TRUE(again.ok()) << again.status() << file;
    EXPECT_EQ(note, text) << file;
    EXPECT_EQ(ValueOf(*again, "--note"), text) << file;
  }
}

TEST_F(ConfigTest, ACommentEndsALineUnlessItIsInQuotes) {
  const absl::StatusOr<Options> options = Parse(
      {"--config", Write("# all\nlr = 0.5 # fast\ndata = \"a #1\" # it's the first\n").c_str()});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->schedule.learning_rate, 0.5);
  EXPECT_EQ(options->data.paths, std::vector<std::string>{"a #1"});
}

// 0100 was read as 64, and -1 as the largest seed.
TEST(OptionsTest, WholeNumbersAreDecimal) {
  EXPECT_EQ(Parse({"--batch-size", "0100"})->batch_size, 100);
  EXPECT_EQ(Parse({"--max-steps", "08"})->max_steps, 8);
  for (const std::vector<const char*>& arguments :
       std::vector<std::vector<const char*>>{{"--seed", "-1"},
                                             {"--seed", "99999999999999999999"},
                                             {"--max-steps", "99999999999999999999"},
                                             {"--max-steps", "1e3"},
                                             {"--epochs", "2.5"},
                                             {"--epochs", " 2"},
                                             {"--epochs", "0x10"}}) {
    const absl::Status status = Parse(arguments).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << arguments[1];
    EXPECT_NE(status.message().find("is not a whole number"), absl::string_view::npos) << status;
  }
}

TEST(OptionsTest, WhatDoesNotGoTogetherIsRefused) {
  const std::vector<std::vector<const char*>> mistakes = {
      {"--bf16", "--dtype", "float64"},
      {"--fp16", "--dtype", "float64"},
      {"--fp16", "--bf16"},
      {"--loss-scale", "2", "--parallel", "threads"},
      {"--loss-scale", "1e-40"},
      {"--dataset", "text"},
      {"--parallel", "threads", "--accumulate", "2"},
      {"--parallel", "average", "--checkpoint-dir", "d"},
      {"--parallel", "average", "--sync-bn"},
      {"--tokenizer", "tokenizer.json"},
      {"--mesh", "dp=2", "--static-graph"},
      {"--zero", "1", "--find-unused-parameters"},
  };
  for (const std::vector<const char*>& arguments : mistakes) {
    EXPECT_EQ(Parse(arguments).status().code(), absl::StatusCode::kInvalidArgument) << arguments[1];
  }
}

TEST(OptionsTest, GeneratedDataAreWhatTheModelTakes) {
  EXPECT_EQ(Parse({"--dataset", "generated"})->data_set.title, "generated images");
  const absl::StatusOr<Options> gpt =
      Parse({"--model", "gpt", "--dataset", "generated", "--context", "64", "--seed", "9"});
  ASSERT_TRUE(gpt.ok()) << gpt.status();
  EXPECT_EQ(gpt->data_set.title, "generated text");
  EXPECT_EQ(gpt->data.context, 64);
  EXPECT_EQ(gpt->data.seed, 9u);
}

// `--model gpt --data my.txt` was "no such directory".
TEST(OptionsTest, AGptReadsTextUnlessTheDatasetIsNamed) {
  const absl::StatusOr<Options> file = Parse({"--model", "gpt", "--data", "my.txt"});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->data_set.name, "text");
  EXPECT_EQ(Parse({"--model", "gpt", "--dataset", "idx"})->data_set.name, "idx");
  EXPECT_EQ(Parse({"--model", "gpt"}).status().message(),
            "a text is needed: name a file with --data, or have one made up with --dataset "
            "generated");
}

// Only the last one was used.
TEST(OptionsTest, DataCanBeInSeveralFiles) {
  const std::vector<std::string> both = {"a.txt", "b.txt"};
  EXPECT_EQ(Parse({"--model", "gpt", "--data", "a.txt", "--data", "b.txt"})->data.paths, both);
  EXPECT_EQ(Parse({"--data", "a.txt", "b.txt", "--model", "gpt"})->data.paths, both);
  EXPECT_EQ(
      Parse({"--model", "gpt", "--data", "x", "--test-data", "a.txt", "b.txt"})->data.test_paths,
      both);
}

TEST(OptionsTest, ATableIsForTheMlpUnlessTheModelIsNamed) {
  const absl::StatusOr<Options> table =
      Parse({"--dataset", "csv", "--data", "a.csv", "--test-data", "b.csv", "--target", "kind"});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->model.name, "mlp");
  EXPECT_EQ(table->data.target, "kind");
  EXPECT_EQ(Parse({"--dataset", "csv", "--data", "a.csv", "--target", "kind", "--model", "cnn"})
                ->model.name,
            "cnn");
  EXPECT_EQ(Parse({"--dataset", "csv", "--data", "a.csv"}).status().message(),
            "--dataset csv needs --target, the column that holds the classes");
  EXPECT_EQ(Parse({"--target", "kind"}).status().message(), "--target is for --dataset csv");
  for (const char* flag : {"--tokenizer=t.json", "--vocabulary=300"}) {
    EXPECT_EQ(
        Parse({"--dataset", "csv", "--data", "x.csv", "--target", "kind", flag}).status().message(),
        "--tokenizer and --vocabulary are for text and tokens, not tables");
  }
}

TEST(OptionsTest, AFolderOfImagesCanHaveItsTestElsewhere) {
  const absl::StatusOr<Options> folder =
      Parse({"--dataset", "folder", "--data", "a", "--test-data", "b", "--image-size", "32"});
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->model.name, "cnn");
  EXPECT_EQ(folder->data.image_size, 32);
  EXPECT_EQ(Parse({"--test-data", "b"}).status().message(),
            "--tokenizer, --vocabulary and --test-data are for text and tokens, not images");
}

TEST(OptionsTest, TokensAreReadAsTheyAreWritten) {
  const absl::StatusOr<Options> given =
      Parse({"--model", "gpt", "--dataset", "tokens", "--data", "train.bin", "--vocabulary",
             "50304", "--tokenizer", "tokenizer.json", "--token-type", "uint32"});
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->data_set.name, "tokens");
  EXPECT_EQ(given->data.vocabulary, 50304);
  EXPECT_EQ(given->shape.classes, 50304);
  EXPECT_EQ(given->data.tokenizer, "tokenizer.json");
  EXPECT_EQ(given->data.token_type, TokenType::kUint32);
  EXPECT_EQ(Parse({})->data.token_type, std::nullopt);
  EXPECT_EQ(Parse({"--dataset", "tokens"}).status().message(),
            "--dataset tokens needs --data, its files");
}

TEST(OptionsTest, EachRankHasASampleOfABatch) {
  EXPECT_TRUE(CheckBatchSize(250, 4).ok());
  EXPECT_TRUE(CheckBatchSize(4, 4).ok());
  EXPECT_EQ(CheckBatchSize(3, 4).message(),
            "--batch-size 3 has no sample for each of 4 ranks; take 4 or more");
}

// GPTs could not be trained with their usual betas.
TEST(OptionsTest, AdamWsNumbersHaveFlags) {
  const auto options = Parse({"--algorithm", "adamw", "--beta1", "0.8", "--beta2", "0.95", "--eps",
                              "1e-6", "--warmup-steps", "10", "--warmup-start", "0.5"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->optimizer.beta1, 0.8);
  EXPECT_EQ(options->optimizer.beta2, 0.95);
  EXPECT_EQ(options->optimizer.epsilon, 1e-6);
  EXPECT_EQ(options->schedule.warmup_start, 0.5);
  for (const char* flag : {"--beta1", "--beta2", "--eps", "--warmup-start"}) {
    EXPECT_FALSE(Parse({flag, "1.5"}).ok()) << flag;
  }
}

// `--algorithm adamw` without --lr took SGD's learning rate, and the losses grew.
TEST(OptionsTest, EachAlgorithmHasALearningRateOfItsOwn) {
  EXPECT_EQ(Parse({})->schedule.learning_rate, 0.02);
  const auto adamw = Parse({"--algorithm", "adamw"});
  EXPECT_EQ(adamw->schedule.learning_rate, 0.001);
  EXPECT_EQ(ValueOf(*adamw, "--lr"), "0.001");
  EXPECT_EQ(Parse({"--algorithm", "adamw", "--lr", "0.02"})->schedule.learning_rate, 0.02);
}

std::string WordOn(const std::vector<const char*>& arguments) {
  return std::string(Parse(arguments).status().message());
}

// "The following arguments were not expected: 0.1 --learning-rate".
TEST(OptionsTest, AFlagThatIsNotThereSuggestsTheOneThatIsMeant) {
  const std::pair<std::vector<const char*>, std::string> mistakes[] = {
      {{"--learning-rate", "0.1"}, "there is no flag --learning-rate; did you mean --lr?"},
      {{"--learning_rate=0.1"}, "there is no flag --learning_rate; did you mean --lr?"},
      {{"--batch_size", "8"}, "there is no flag --batch_size; did you mean --batch-size?"},
      {{"--batchsize", "8"}, "there is no flag --batchsize; did you mean --batch-size?"},
      {{"--epoch", "2"}, "there is no flag --epoch; did you mean --epochs?"},
      {{"--warmup", "2"}, "there is no flag --warmup; did you mean --warmup-steps?"},
      {{"--wieght-decay", "2"}, "there is no flag --wieght-decay; did you mean --weight-decay?"},
      {{"--num-workers", "2"}, "there is no flag --num-workers; did you mean --loader-threads?"},
      {{"--no-evl"}, "there is no flag --no-evl; did you mean --no-eval?"},
      {{"--checkpointdir=x"}, "there is no flag --checkpointdir; did you mean --checkpoint-dir?"},
      {{"--n_head", "2"}, "there is no flag --n_head; did you mean --heads?"},
      {{"--lr", "0.1", "--xyzzy", "1"}, "there is no flag --xyzzy;"},
      {{"0.1"}, "'0.1' is not a flag's value;"},
  };
  for (const auto& [arguments, sentence] : mistakes) {
    EXPECT_EQ(WordOn(arguments), sentence + " --help lists the flags");
  }
}

// Reports given flags that change nothing.
TEST(OptionsTest, AFlagWithoutEffectIsNamed) {
  const RunFacts two = {.ranks = 2, .data_ranks = 2, .stages = 5, .steps = 100};
  const auto said = [](const std::vector<const char*>& arguments, const RunFacts& run) {
    const absl::StatusOr<Options> options = Parse(arguments);
    EXPECT_TRUE(options.ok()) << options.status();
    if (!options.ok()) return std::vector<std::string>();
    std::vector<const char*> line = arguments;
    line.insert(line.begin(), "muster-train");
    return FlagsWithoutEffect(*options, ReadCommandLine(static_cast<int>(line.size()), line.data()),
                              run);
  };
  const std::pair<std::vector<const char*>, std::string> idle[] = {
      {{"--algorithm", "adamw", "--momentum", "0.9"},
       "--momentum has no effect with --algorithm adamw"},
      {{"--algorithm", "adamw", "--nesterov"}, "--nesterov has no effect with --algorithm adamw"},
      {{"--beta2", "0.95"}, "--beta2 has no effect with --algorithm sgd"},
      {{"--no-decay-vectors"}, "--no-decay-vectors has no effect without --weight-decay"},
      {{"--lr-min", "0.001"}, "--lr-min has no effect without --schedule cosine"},
      {{"--lr-gamma", "0.5", "--schedule", "cosine"},
       "--lr-gamma has no effect without --schedule step"},
      {{"--schedule", "step", "--lr-step-size", "100"},
       "--lr-step-size has no effect in a run of 100 steps, in which the learning rate never "
       "drops"},
      {{"--warmup-start", "0.5"}, "--warmup-start has no effect without --warmup-steps"},
      {{"--warmup-steps", "100"},
       "--warmup-steps 100 is no shorter than the run of 100 steps, so the learning rate never "
       "reaches --lr"},
      {{"--loss-scale-window", "9"},
       "--loss-scale-window has no effect without --fp16 or --loss-scale"},
      {{"--heads", "2"}, "--heads has no effect with --model cnn; it is for gpt"},
      {{"--stem", "imagenet"}, "--stem has no effect with --model cnn; it is for resnet18"},
      {{"--model", "gpt", "--dataset", "generated", "--flip"},
       "--flip has no effect except on images"},
      {{"--model", "gpt", "--dataset", "generated", "--crop-padding", "2"},
       "--crop-padding has no effect except on images"},
      {{"--context", "64"}, "--context has no effect except on text and tokens"},
      {{"--image-size", "32"}, "--image-size has no effect with --dataset idx; it is for folder"},
      {{"--token-type", "uint16"},
       "--token-type has no effect with --dataset idx; it is for tokens"},
      {{"--dataset", "generated", "--data", "x"},
       "--data has no effect with --dataset generated, which is made up"},
      {{"--tf32"}, "--tf32 has no effect without a GPU"},
      {{"--qat-freeze-epoch", "2"}, "--qat-freeze-epoch has no effect without --qat"},
      {{"--parallel", "average", "--comm-hook", "bf16"},
       "--comm-hook has no effect with --parallel average"},
      {{"--zero", "1", "--bucket-mb", "3"}, "--bucket-mb has no effect with --zero"},
      {{"--average-every", "3"}, "--average-every has no effect without --parallel average"},
      {{"--replicas", "3"}, "--replicas has no effect without --parallel threads"},
      {{"--mesh", "tp=2", "--pipeline-schedule", "gpipe"},
       "--pipeline-schedule has no effect without a pipeline (--mesh pp=2)"},
      {{"--checkpoint-every", "10"}, "--checkpoint-every has no effect without --checkpoint-dir"},
      {{"--keep", "1"}, "--keep has no effect without --checkpoint-dir"},
      {{"--no-init-strict"}, "--no-init-strict has no effect without --init-from"},
      {{"--trace-steps", "2"}, "--trace-steps has no effect without --trace"},
  };
  for (const auto& [arguments, sentence] : idle) {
    EXPECT_EQ(said(arguments, two), std::vector<std::string>{sentence});
  }
  RunFacts alone = two;
  alone.ranks = alone.data_ranks = 1;
  EXPECT_EQ(said({"--comm-hook", "bf16"}, alone),
            std::vector<std::string>{"--comm-hook has no effect on one rank"});
  EXPECT_EQ(
      said({"--sync-bn"}, two)[0].find("--sync-bn has no effect with cnn, which has no batch"), 0u);
  RunFacts with_batch_norm = two;
  with_batch_norm.has_batch_norm = true;
  for (const std::vector<const char*>& arguments : std::vector<std::vector<const char*>>{
           {},
           {"--momentum", "0.5", "--nesterov", "--flip", "--sync-bn", "--comm-hook", "bf16"},
           {"--algorithm", "adamw", "--beta2", "0.95", "--eps", "1e-6"},
           {"--schedule", "cosine", "--lr-min", "1e-4", "--warmup-steps", "5", "--warmup-start",
            "0.5"},
           {"--model", "gpt", "--data", "x", "--heads", "2", "--context", "9"},
           {"--checkpoint-dir", "d", "--keep", "2"}}) {
    EXPECT_EQ(said(arguments, with_batch_norm), std::vector<std::string>());
  }
}

TEST(OptionsTest, ThreadsOfOneProcessAreAWorldOfOne) {
  const absl::StatusOr<Options> options = Parse({"--parallel", "threads"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(CheckWorld(*options, 1).ok());
  EXPECT_EQ(CheckWorld(*options, 2).message(),
            "--parallel threads is one process, and this is a world of 2");
}

// Whether a resumed run has its original batch is known once the checkpoint is read.
TEST(OptionsTest, ARunWithCheckpointsMayHaveChangedItsWorld) {
  const absl::StatusOr<Options> options = Parse({"--batch-size", "9", "--checkpoint-dir", "d"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(CheckWorld(*options, 2).ok());
}

// The error was CLI11's, or none: --model was shadowed, and checkpoints could not be read.
TEST(OptionsTest, AFlagOfARecipeThatCannotBeIsOneSentence) {
  const auto mistake = [](const std::function<void(FlagSet & flags)>& add) {
    const char* const arguments[] = {"own"};
    return std::string(ParseOptions(1, arguments, OwnRegistry(add)).status().message());
  };
  double number = 1;
  bool on = false;
  std::string text;
  for (const char* flag : {"--epochs", "--model", "--dataset", "--help", "--config", "--checkpoint",
                           "--no-eval", "--json", "--dtype"}) {
    EXPECT_EQ(mistake([&](FlagSet& flags) { flags.Number(flag, number, 0.0, 2.0, ""); }),
              std::string("the recipe's flag ") + flag +
                  " is one that own has already; give it another name");
  }
  EXPECT_EQ(mistake([&](FlagSet& flags) { flags.Switch("eval", on, ""); }),
            "the recipe's flag --eval is one that own has already; give it another name");
  EXPECT_EQ(mistake([&](FlagSet& flags) {
              flags.Text("--note", text, "");
              flags.Choice("--note", text, {""}, "");
            }),
            "the recipe's flag --note is one that own has already; give it another name");
  EXPECT_EQ(mistake([&](FlagSet& flags) { flags.Text("note", text, ""); }),
            "the recipe's flag note begins with two dashes, as --note");
  EXPECT_EQ(mistake([&](FlagSet& flags) { flags.Text("-n", text, ""); }),
            "the recipe's flag -n begins with two dashes, as --n");
  EXPECT_EQ(mistake([&](FlagSet& flags) { flags.Switch("--fast", on, ""); }),
            "the recipe's switch --fast is given without dashes, as fast");
  for (const char* flag : {"", "--", "--a,--b", "--a b", "--a=b"}) {
    EXPECT_EQ(mistake([&](FlagSet& flags) { flags.Text(flag, text, ""); }),
              std::string("the recipe's flag '") + flag +
                  "' has no name: two dashes, and letters, digits and dashes behind them");
  }
  EXPECT_EQ(mistake([&](FlagSet& flags) { flags.Text("--my_note-2", text, ""); }), "");
}

}  // namespace
}  // namespace muster::trainer
