#include "trainer/app/options/options.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "trainer/app/options/config_file.h"

namespace muster::trainer {
namespace {

absl::StatusOr<Options> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "muster-train");
  return ParseOptions(static_cast<int>(arguments.size()), arguments.data());
}

// A program of a recipe whose flags `add` adds. Nothing here opens its data or makes its model.
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

TEST_F(ConfigTest, AMistakeInTheFileIsOneSentence) {
  for (const char* text : {"epoch = 3\n", "epochs = many\n", "model = \"vgg\"\n"}) {
    const absl::Status status = Parse({"--config", Write(text).c_str()}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(status.message().find('\n'), absl::string_view::npos) << status;
  }
}

// A decimal comma became 1 of 0,001, and of two values the last was taken.
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

// Of all flags, those that the line gives and those it does not; with paths that are hard to quote.
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
  std::vector<std::string> texts = {"",
                                    " ",
                                    " a ",
                                    "it's",
                                    "\"",
                                    "'",
                                    "''",
                                    "\"\"",
                                    "it's \"",
                                    "'\" '",
                                    "\\",
                                    "\\\\",
                                    "a\\",
                                    "a\\'",
                                    "a\\\"'",
                                    "\\n",
                                    "\n",
                                    "a\nb",
                                    "\na\n",
                                    "a\r\nb",
                                    "\t",
                                    "#",
                                    "a #b",
                                    "\"a\" # 'b'",
                                    "[",
                                    "]",
                                    "[a, b]",
                                    "[\"a\"]",
                                    "a, b",
                                    ",",
                                    "a=b",
                                    "=",
                                    ";",
                                    "; a",
                                    "true",
                                    " true",
                                    "12",
                                    " 12",
                                    "1e5",
                                    "nan",
                                    "0x10",
                                    "{}",
                                    "%%",
                                    "Käse € 😀",
                                    "\x01",
                                    "\x01"
                                    "0",
                                    "\x7f",
                                    "\\u0041",
                                    "--help",
                                    "a' # b",
                                    "a\", 'b",
                                    "'a', 'b'",
                                    "[a]\n[b]",
                                    "\xff\xfe",
                                    "`a b`",
                                    "a' 'b"};
  // All short texts of what is hard to read.
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

// 0100 was 64, and -1 the largest seed there is.
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

// The last one won.
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

TEST(OptionsTest, TheRanksMustShareTheBatchEvenly) {
  EXPECT_TRUE(CheckBatchSize(250, 1).ok());
  EXPECT_TRUE(CheckBatchSize(250, 5).ok());
  EXPECT_EQ(CheckBatchSize(250, 4).message(),
            "--batch-size 250 cannot be shared evenly by 4 ranks; take 248 or 252");
}

TEST(OptionsTest, ThreadsOfOneProcessAreAWorldOfOne) {
  const absl::StatusOr<Options> options = Parse({"--parallel", "threads"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(CheckWorld(*options, 1).ok());
  EXPECT_EQ(CheckWorld(*options, 2).message(),
            "--parallel threads is one process, and this is a world of 2");
}

// Whether a run that goes on has the batch it began with is known when the checkpoint is read.
TEST(OptionsTest, ARunWithCheckpointsMayHaveChangedItsWorld) {
  const absl::StatusOr<Options> options = Parse({"--batch-size", "9", "--checkpoint-dir", "d"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(CheckWorld(*options, 2).ok());
}

// CLI11's words, or none: --model was shadowed, and checkpoints could not be read.
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
