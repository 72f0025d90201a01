// eval, generate and predict from outside, with models that muster-train has just trained.
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "test/support/temp_dir.h"
#include "test/trainer/app/command_words.h"
#include "test/trainer/ranks.h"
#include "trainer/io/state_dict.h"
#include "trainer/io/torch_file.h"
#include "trainer/models/gpt.h"
#include "trainer/models/model.h"

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;
using test::ReadAll;

constexpr std::int64_t kContext = 32;

// The last value of `name` in a file of metrics.
double LastMetric(const std::string& path, const char* name) {
  double value = -1;
  for (const base::Json& record : LinesOfJson(ReadAll(path))) {
    if (record.contains(name)) value = record[name].get<double>();
  }
  return value;
}

// As metrics have it.
std::string NineDigits(double value) {
  return absl::StrFormat("%.9g", value);
}

// A GPT of two heads, and an mlp, trained for a moment by the program itself.
class CommandsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = std::make_unique<test::TempDir>();
    std::string text;
    for (int i = 0; i < 900; ++i) {
      absl::StrAppend(&text, "Käse ", i % 7, " € kostet mehr als Brot ", i % 5, ".\n");
    }
    dir_->Write("text", text);
    gpt_said_ = TrainOk(
        test::WordsOf("--model gpt --layers 2 --heads 2 --width 32 --batch-size 16 --algorithm "
                      "adamw --lr 0.01 --max-steps 40") +
        Arguments{"--data", Path("text"), "--context", std::to_string(kContext), "--checkpoint-dir",
                  Path("gpt"), "--checkpoint", Path("gpt.pt"), "--export", Path("gpt.safetensors"),
                  "--metrics", Path("gpt.jsonl")});
    TrainOk({"--dataset", "generated", "--model", "mlp", "--checkpoint-dir", Path("mlp"),
             "--checkpoint", Path("mlp.pt"), "--metrics", Path("mlp.jsonl")});
  }
  static void TearDownTestSuite() { dir_.reset(); }

  static std::string Path(const std::string& name) { return dir_->Path(name); }

  // The text written by generate, without the line break at its end.
  static std::string Generate(const Arguments& more) {
    const std::string out = TrainOk(Arguments{"generate", "--checkpoint", Path("gpt")} + more);
    return out.substr(0, out.size() - 1);
  }

  static base::Json Eval(const Arguments& more) {
    return base::ParseJson(TrainOk(Arguments{"eval", "--json"} + more));
  }

  // One sentence on standard error, and exit code 2.
  static std::string Refusal(const Arguments& arguments) {
    Ranks ranks(MusterTrainWith(arguments), 1);
    EXPECT_EQ(ranks.Wait(), std::vector<int>{2});
    const std::string errors = ranks.errors();
    EXPECT_EQ(errors.rfind("muster-train: ", 0), 0u) << errors;
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
    EXPECT_EQ(ranks[0].out(), "");
    return errors;
  }

  static std::unique_ptr<test::TempDir> dir_;
  static std::string gpt_said_;
};

std::unique_ptr<test::TempDir> CommandsTest::dir_;
std::string CommandsTest::gpt_said_;

TEST_F(CommandsTest, TheSameSeedGivesTheSameText) {
  const Arguments prompt = {"--prompt", "Brot ", "--tokens", "60", "--temperature", "1"};
  const std::string text = Generate(prompt + Arguments{"--seed", "7"});
  EXPECT_EQ(text.size(), 65u);
  EXPECT_EQ(text.rfind("Brot ", 0), 0u) << text;
  EXPECT_EQ(Generate(prompt + Arguments{"--seed", "7"}), text);
  EXPECT_NE(Generate(prompt + Arguments{"--seed", "8"}), text);
  // With a single candidate there is no choice.
  EXPECT_EQ(Generate(prompt + Arguments{"--top-k", "1"}),
            Generate({"--prompt", "Brot ", "--tokens", "60", "--temperature", "0"}));
}

TEST_F(CommandsTest, WithoutTemperatureTheTextIsWhatTheModelFindsLikeliest) {
  const auto model =
      MakeModel(GptRecipe({.layers = 2, .heads = 2, .width = 32}),
                {.kind = DataShape::Kind::kText, .classes = 256, .context = kContext});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto state = ReadTorchFile(Path("gpt.pt"));
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_TRUE(LoadStateDict(*state, (*model)->StateDict()).ok());

  const at::NoGradGuard no_grad;
  std::string text = "Käse ";
  while (text.size() < 100) {  // several times the context
    std::vector<std::int64_t> window;
    for (std::size_t i = text.size() - std::min<std::size_t>(text.size(), kContext);
         i < text.size(); ++i) {
      window.push_back(static_cast<unsigned char>(text[i]));
    }
    const at::Tensor scores = (*model)->Forward(at::tensor(window, at::kLong).unsqueeze(0));
    text += static_cast<char>(scores.argmax(-1)[0][-1].item<std::int64_t>());
  }
  EXPECT_EQ(
      Generate({"--prompt", "Käse ", "--tokens", std::to_string(100 - 6), "--temperature", "0"}),
      text);
}

TEST_F(CommandsTest, EveryKindOfFileHoldsTheSameModel) {
  const Arguments greedy = {"--tokens", "20", "--temperature", "0", "--prompt", "K"};
  const std::string text = Generate(greedy);
  for (const char* file : {"gpt.pt", "gpt.safetensors"}) {
    const Arguments from = Arguments{"generate", "--checkpoint", Path(file)} + greedy;
    EXPECT_EQ(TrainOk(from + Arguments{"--heads", "2"}), text + "\n") << file;
    // Only checkpoints have it.
    EXPECT_NE(Refusal(from).find("give the --heads of the training"), std::string::npos);
  }
  EXPECT_NE(Refusal(Arguments{"generate", "--checkpoint", Path("gpt"), "--heads", "4"} + greedy)
                .find("made with --heads 2"),
            std::string::npos);
}

TEST_F(CommandsTest, EvalMeasuresWhatTrainingMeasured) {
  const base::Json text = Eval({"--checkpoint", Path("gpt"), "--data", Path("text")});
  EXPECT_EQ(NineDigits(text["loss"]), NineDigits(LastMetric(Path("gpt.jsonl"), "test/loss")));
  EXPECT_EQ(NineDigits(text["accuracy"]),
            NineDigits(LastMetric(Path("gpt.jsonl"), "test/accuracy")));
  EXPECT_EQ(text["step"], 40);
  EXPECT_NEAR(text["perplexity"], std::exp(text["loss"].get<double>()), 1e-12);
  EXPECT_NEAR(text["bits_per_byte"], text["loss"].get<double>() / std::log(2), 1e-12);

  for (const char* from : {"mlp", "mlp.pt"}) {
    const base::Json images = Eval({"--checkpoint", Path(from), "--dataset", "generated"});
    EXPECT_EQ(NineDigits(images["loss"]), NineDigits(LastMetric(Path("mlp.jsonl"), "test/loss")));
    EXPECT_EQ(NineDigits(images["accuracy"]),
              NineDigits(LastMetric(Path("mlp.jsonl"), "test/accuracy")));
    EXPECT_EQ(images["samples"], 500);
    EXPECT_FALSE(images.contains("perplexity"));
  }
}

TEST_F(CommandsTest, EvalSaysItInTheWordsOfTraining) {
  const std::string said = TrainOk({"eval", "--checkpoint", Path("gpt"), "--data", Path("text")});
  for (const std::string name : {"test loss      ", "test accuracy  "}) {
    const std::size_t at = gpt_said_.find(name);
    ASSERT_NE(at, std::string::npos) << gpt_said_;
    const std::string line = gpt_said_.substr(at, gpt_said_.find('\n', at) - at + 1);
    EXPECT_NE(said.find(line), std::string::npos) << line << said;
  }
  EXPECT_NE(said.find("(gpt, after step 40)\n"), std::string::npos) << said;
  EXPECT_NE(said.find("text (" + Path("text") + "), "), std::string::npos) << said;
}

// Hosts need no common file system: the other rank does not have the file, and gets rank 0's data.
TEST_F(CommandsTest, RanksMeasureTogetherWhatRankZeroReads) {
  fs::copy_file(Path("mlp.pt"), Path("mlp.pt.0"));
  Ranks ranks(
      {"/bin/sh", "-c", "exec \"$0\" eval --json --dataset generated --checkpoint \"$1.$RANK\"",
       MusterTrainWith({})[0], Path("mlp.pt")},
      2);
  EXPECT_EQ(ranks.Wait(), (std::vector<int>{0, 0})) << ranks.errors();
  EXPECT_EQ(ranks[1].out(), "");
  const base::Json both = base::ParseJson(ranks[0].out());
  const base::Json alone = Eval({"--checkpoint", Path("mlp.pt"), "--dataset", "generated"});
  EXPECT_NEAR(both["loss"], alone["loss"].get<double>(), 1e-6);
  EXPECT_EQ(both["accuracy"], alone["accuracy"]);
  EXPECT_EQ(both["samples"], 500);
}

// It required --data again, and measured on other data if --vocabulary or --dataset was forgotten.
TEST_F(CommandsTest, EvalMeasuresOnTheDataOfTheTraining) {
  EXPECT_EQ(Eval({"--checkpoint", Path("mlp")}),
            Eval({"--checkpoint", Path("mlp"), "--dataset", "generated"}));
  const base::Json text = Eval({"--checkpoint", Path("gpt")});
  EXPECT_EQ(text, Eval({"--checkpoint", Path("gpt"), "--dataset", "text", "--data", Path("text")}));
  dir_->Write("other", ReadAll(Path("text")).substr(0, 20000));
  const base::Json other = Eval({"--checkpoint", Path("gpt"), "--data", Path("other")});
  EXPECT_LT(other["samples"], text["samples"]);
}

// A model trained with a tokenizer wrote its token numbers as bytes.
TEST_F(CommandsTest, TokensOfATokenizerAreWrittenAsText) {
  const std::string tokenizer = "test/trainer/text/testdata/gpt2.json";
  TrainOk({"--model",          "gpt",       "--data",       Path("text"),
           "--tokenizer",      tokenizer,   "--layers",     "1",
           "--heads",          "2",         "--width",      "32",
           "--context",        "16",        "--batch-size", "16",
           "--algorithm",      "adamw",     "--lr",         "0.01",
           "--max-steps",      "60",        "--vocabulary", "512",
           "--checkpoint-dir", Path("bpe"), "--checkpoint", Path("bpe.pt")});
  const Arguments more = {"--prompt", "Brot kostet ", "--tokens", "40", "--seed", "3"};
  const std::string text = TrainOk(Arguments{"generate", "--checkpoint", Path("bpe")} + more);
  EXPECT_EQ(text.rfind("Brot kostet ", 0), 0u) << text;
  EXPECT_NE(text.find("€"), std::string::npos) << text;
  EXPECT_GT(text.size(), 40u + 13u) << "a token is more than a byte";
  EXPECT_EQ(TrainOk(Arguments{"generate", "--checkpoint", Path("bpe.pt"), "--heads", "2",
                              "--tokenizer", tokenizer} +
                    more),
            text);
  EXPECT_TRUE(Eval({"--checkpoint", Path("bpe")}).contains("bits_per_token"));
  EXPECT_TRUE(Eval({"--checkpoint", Path("gpt")}).contains("bits_per_byte"));
  EXPECT_NE(Refusal({"generate", "--checkpoint", Path("bpe.pt"), "--heads", "2"})
                .find("the model knows 512 tokens, which are not bytes; give the --tokenizer"),
            std::string::npos);
  EXPECT_NE(Refusal({"generate", "--checkpoint", Path("gpt"), "--tokenizer", tokenizer})
                .find("and the model knows 256"),
            std::string::npos);
}

// Rank 0 cannot read it, and the other one does not wait for it.
TEST_F(CommandsTest, RanksEndAlikeWithoutACheckpoint) {
  Ranks ranks(MusterTrainWith({"eval", "--checkpoint", Path("none.pt"), "--dataset", "generated"}),
              2);
  EXPECT_EQ(ranks.Wait(), (std::vector<int>{2, 2})) << ranks.errors();
  for (const int rank : {0, 1}) {
    EXPECT_NE(ranks[rank].err().find("none.pt"), std::string::npos) << ranks[rank].err();
  }
}

TEST_F(CommandsTest, PredictSaysOfEachImageWhatEvalCounts) {
  const Arguments predict = {"predict",   "--checkpoint", Path("mlp"), "--dataset",
                             "generated", "--top-k",      "10"};
  const std::string out = TrainOk(predict);
  const std::vector<base::Json> lines = LinesOfJson(out);
  ASSERT_EQ(lines.size(), 500u);
  int right = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const base::Json& line = lines[i];
    EXPECT_EQ(line["index"], i);
    ASSERT_EQ(line["top"].size(), 10u);
    double sum = 0;
    double last = 1;
    for (const base::Json& entry : line["top"]) {
      const double probability = entry["probability"];
      EXPECT_LE(probability, last);
      last = probability;
      sum += probability;
    }
    EXPECT_NEAR(sum, 1, 1e-6);
    if (line["top"][0]["class"] == line["label"]) ++right;
  }
  const base::Json eval = Eval({"--checkpoint", Path("mlp"), "--dataset", "generated"});
  EXPECT_EQ(right / 500.0, eval["accuracy"].get<double>());

  EXPECT_EQ(TrainOk(predict + Arguments{"--output", Path("lines")}), "");
  EXPECT_EQ(ReadAll(Path("lines")), out);
  EXPECT_EQ(LinesOfJson(TrainOk(predict + Arguments{"--split", "train"})).size(), 2050u);
}

TEST_F(CommandsTest, PredictReadsTheFilesOfCifar) {
  for (int file = 1; file <= 6; ++file) {
    std::string records;
    for (int i = 0; i < 20; ++i) {
      records += static_cast<char>(i % 10);
      records += std::string(3072, static_cast<char>(i % 10 * 20 + file));
    }
    dir_->Write(file < 6 ? absl::StrCat("data_batch_", file, ".bin") : "test_batch.bin", records);
  }
  const Arguments data = {"--dataset", "cifar10", "--data", dir_->path()};
  TrainOk(data + Arguments{"--model", "resnet18", "--batch-size", "10", "--checkpoint",
                           Path("resnet.pt"), "--max-steps", "2", "--no-eval"});
  const std::vector<base::Json> lines =
      LinesOfJson(TrainOk(Arguments{"predict", "--checkpoint", Path("resnet.pt")} + data));
  ASSERT_EQ(lines.size(), 20u);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i]["label"], i % 10);
    EXPECT_EQ(lines[i]["top"].size(), 3u);
  }
}

TEST_F(CommandsTest, MistakesAreOneSentenceAndExitCodeTwo) {
  dir_->Write("damaged.pt", ReadAll(Path("mlp.pt")).substr(0, 5000));
  fs::create_directories(Path("empty"));
  const std::vector<std::pair<Arguments, std::string>> mistakes = {
      {{"generate"}, "--checkpoint is required"},
      {{"generate", "--checkpoint", Path("none.pt")}, "none.pt"},
      {{"generate", "--checkpoint", Path("empty")}, "it has neither an index.json nor checkpoints"},
      {{"generate", "--checkpoint", Path("damaged.pt")}, "damaged.pt"},
      {{"generate", "--checkpoint", Path("text")}, "text"},
      {{"generate", "--checkpoint", Path("mlp")}, "muster-train predict"},
      {{"generate", "--checkpoint", Path("gpt"), "--prompt", ""}, "--prompt is empty"},
      {{"generate", "--checkpoint", Path("gpt"), "--temperature", "-1"}, "--temperature"},
      {{"generate", "--checkpoint", Path("gpt"), "--epochs", "1"}, "--epochs"},
      {{"eval", "--checkpoint", Path("gpt.safetensors"), "--heads", "2"}, "a text is needed"},
      {{"eval", "--checkpoint", Path("gpt"), "--data", Path("text"), "--context", "64"},
       "made with --context=32"},
      {{"eval", "--checkpoint", Path("gpt"), "--dataset", "idx"}, "gpt"},
      {{"eval", "--checkpoint", Path("mlp"), "--dataset", "none"}, "--dataset"},
      {{"eval", "--checkpoint", Path("none.pt"), "--dataset", "generated"}, "none.pt"},
      {{"predict", "--checkpoint", Path("gpt"), "--dataset", "generated"}, "muster-train generate"},
      {{"predict", "--checkpoint", Path("mlp"), "--dataset", "generated", "--output", "/no/dir/f"},
       "/no/dir/f"},
      {{"predict", "--checkpoint", Path("mlp"), "--data", "/no/such/dir"}, "/no/such/dir"},
  };
  for (const auto& [arguments, sentence] : mistakes) {
    SCOPED_TRACE(sentence);
    const std::string said = Refusal(arguments);
    EXPECT_NE(said.find(sentence), std::string::npos) << said;
  }
  EXPECT_FALSE(fs::exists(Path("none.pt")));
}

TEST_F(CommandsTest, EachCommandExplainsItself) {
  for (const char* command : {"eval", "generate", "predict"}) {
    const std::string help = TrainOk({command, "--help"});
    EXPECT_NE(help.find(absl::StrCat("Usage: muster-train ", command)), std::string::npos) << help;
    EXPECT_NE(help.find("--checkpoint"), std::string::npos) << help;
  }
}

// Runs `line` in a shell where $0 is the program under test.
int Shell(const std::string& line, std::string* errors) {
  Ranks shell(Arguments{"sh", "-c", line} + MusterTrainWith({}), 1);
  const int code = shell.Wait()[0];
  *errors = shell.errors();
  return code;
}

// A lost result was not a failure: the disk was full, and the script went on.
TEST(StdoutTest, AnAnswerThatCannotBeWrittenIsAFailure) {
  std::string errors;
  EXPECT_EQ(Shell("\"$0\" --help > /dev/full", &errors), 1);
  EXPECT_NE(errors.find("muster-train: write to stdout: "), std::string::npos) << errors;
}

constexpr char kTokenize[] = "\"$0\" tokenize --tokenizer test/trainer/text/testdata/gpt2.json ";

// The text ended at a read error, and the tokens looked complete.
TEST(StdinTest, AnErrorIsNoEndOfTheText) {
  const test::TempDir dir;
  std::string errors;
  EXPECT_EQ(Shell(kTokenize + ("--output " + dir.Path("out.bin") + " - < ."), &errors), 2);
  EXPECT_NE(errors.find("read -: Is a directory"), std::string::npos) << errors;
  EXPECT_FALSE(fs::exists(dir.Path("out.bin")));
}

// The summary was mixed into the tokens.
TEST(StdoutTest, TokensOnStdoutAreNothingButTokens) {
  const test::TempDir dir;
  const std::string text = dir.Write("a.txt", "some text");
  std::string errors;
  ASSERT_EQ(Shell(kTokenize + ("--output " + dir.Path("file.bin ") + text), &errors), 0) << errors;
  const std::string to_stdout = std::string(kTokenize) + "--output /dev/stdout " + text;
  ASSERT_EQ(Shell(to_stdout + " > " + dir.Path("redirected.bin"), &errors), 0) << errors;
  EXPECT_NE(errors.find(" tokens of a vocabulary of "), std::string::npos) << errors;
  ASSERT_EQ(Shell(to_stdout + " | cat > " + dir.Path("piped.bin"), &errors), 0) << errors;
  EXPECT_EQ(ReadAll(dir.Path("redirected.bin")), ReadAll(dir.Path("file.bin")));
  EXPECT_EQ(ReadAll(dir.Path("piped.bin")), ReadAll(dir.Path("file.bin")));
}

}  // namespace
}  // namespace muster::trainer
