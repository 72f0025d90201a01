// muster-train from outside: the files it writes on request, its possible starting points, and what
// it refuses.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/temp_dir.h"
#include "test/trainer/ranks.h"

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;
using test::ReadAll;
using Words = std::vector<std::string>;

class ProgramTest : public testing::Test {
 protected:
  std::vector<std::string> Small(const std::vector<std::string>& more) const {
    return test::Joined(
        {"--dataset", "generated", "--model", "mlp", "--checkpoint", dir_.Path("model.pt")}, more);
  }

  const test::TempDir dir_;
};

TEST_F(ProgramTest, WritesMetricsEventsTraceAndProfile) {
  const std::string out =
      TrainOk(Small({"--metrics", dir_.Path("m.jsonl"), "--tensorboard", dir_.Path("tb"), "--trace",
                     dir_.Path("trace.json"), "--trace-steps", "3", "--profile", "--clip", "1",
                     "--report-every", "5", "--max-steps", "12"}),
              2);

  std::ifstream metrics(dir_.Path("m.jsonl"));
  std::vector<nlohmann::json> records;
  for (std::string line; std::getline(metrics, line);) {
    records.push_back(nlohmann::json::parse(line, nullptr, false));
    EXPECT_TRUE(records.back().is_object()) << line;
  }
  ASSERT_EQ(records.size(), 5u) << "steps 5, 10 and 12, the test, the summary";
  EXPECT_EQ(records[0]["step"], 5);
  EXPECT_GT(records[0]["train/loss"], 0);
  EXPECT_GT(records[0]["train/gradient_norm"], 0);
  EXPECT_EQ(records[2]["step"], 12);
  EXPECT_GT(records[3]["test/accuracy"], 0);
  EXPECT_EQ(records[4]["summary/model_bytes"], 269322 * 4);

  ASSERT_TRUE(fs::is_directory(dir_.Path("tb")));
  EXPECT_NE(ReadAll(fs::directory_iterator(dir_.Path("tb"))->path()).find("train/loss"),
            std::string::npos);

  const auto trace = nlohmann::json::parse(ReadAll(dir_.Path("trace.json")), nullptr, false);
  ASSERT_TRUE(trace.is_array());
  int phases[2] = {0, 0};
  int products[2] = {0, 0};
  for (const auto& event : trace) {
    const int rank = event["pid"];
    ASSERT_TRUE(rank == 0 || rank == 1);
    if (event["name"] == "optimizer") ++phases[rank];
    if (event["name"] == "aten::addmm") ++products[rank];
  }
  for (const int rank : {0, 1}) {
    EXPECT_EQ(phases[rank], 3);
    EXPECT_GE(products[rank], 9) << "three layers, three steps";
  }

  for (const char* text : {"phase         ms/step   share\n", "DDP, ms of a step: forward "}) {
    EXPECT_NE(out.find(text), std::string::npos) << out;
  }
}

// The metrics of a stopped run ended as if it were over; and a finished run, started again, had two
// tests and two ends.
TEST_F(ProgramTest, TheMetricsEndWhenTheRunDoesAndOnce) {
  const auto with = [&](const std::string& name, Words more) {
    more.insert(more.end(), {"--checkpoint-dir", dir_.Path(name), "--metrics",
                             dir_.Path(name + ".jsonl"), "--report-every", "1"});
    return Small(more);
  };
  BeatEar ear;
  Ranks ranks(MusterTrainWith(with("stopped", {"--epochs", "100000"})), 1, {ear.variable()});
  ASSERT_TRUE(ear.WaitForStep(5)) << ranks.errors();
  ranks[0].Signal(SIGTERM);
  EXPECT_EQ(ranks.Wait(), std::vector<int>{143});
  const std::string stopped = ReadAll(dir_.Path("stopped.jsonl"));
  EXPECT_NE(stopped.find("train/loss"), std::string::npos);
  EXPECT_EQ(stopped.find("summary/"), std::string::npos) << stopped;

  for (const Words& length : {Words{"--max-steps", "3"}, Words{"--epochs", "1"}}) {
    const Words arguments = with(length[0], length);
    TrainOk(arguments, 2);
    const std::string once = ReadAll(dir_.Path(length[0] + ".jsonl"));
    EXPECT_NE(once.find("summary/"), std::string::npos);
    TrainOk(arguments, 2);
    EXPECT_EQ(ReadAll(dir_.Path(length[0] + ".jsonl")), once);
  }
  // It repeats the report only where it has not been written.
  Words elsewhere = with("--epochs", {"--epochs", "1"});
  *std::find(elsewhere.begin(), elsewhere.end(), dir_.Path("--epochs.jsonl")) = dir_.Path("new");
  TrainOk(elsewhere, 2);
  EXPECT_NE(ReadAll(dir_.Path("new")).find("test/loss"), std::string::npos);
}

// A file name cleared the user's terminal when a message was printed.
TEST_F(ProgramTest, ControlCharactersOfNamesAreNotPrinted) {
  Ranks ranks(MusterTrainWith(Small({"--init-from", dir_.Path("a\x1b[2Jb\nc.pt")})), 1);
  EXPECT_EQ(ranks.Wait(), std::vector<int>{2});
  const std::string errors = ranks.errors();
  EXPECT_NE(errors.find("a?[2Jb?c.pt"), std::string::npos) << errors;
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
}

// A user who tried it out found a muster-train.pt in the current directory.
TEST_F(ProgramTest, LeavesNothingWhereNothingIsAskedFor) {
  test::Command program({"/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", dir_.path(),
                         fs::absolute(MusterTrainWith({})[0]).string(), "--dataset", "generated",
                         "--model", "mlp", "--max-steps", "1"});
  ASSERT_EQ(program.Wait(std::chrono::seconds(120)), 0) << program.err();
  EXPECT_TRUE(fs::is_empty(dir_.path()));
  EXPECT_EQ(program.out().find("checkpoint"), std::string::npos) << program.out();
}

TEST_F(ProgramTest, SaysWhatItRunsOnBeforeItBegins) {
  const std::string out = TrainOk(Small({"--max-steps", "1", "--no-eval"}));
  EXPECT_EQ(
      out.rfind("muster-train: mlp on generated images, rank 0 of 1, 1 thread each, BLAS ", 0), 0u)
      << out;
  EXPECT_NE(out.find("\njoined: "), std::string::npos) << out;
}

// "The first thing it told me was to install a package that is installed": four ranks measured at
// once, and OpenBLAS was slow at that moment. Here it is slow for the whole run.
TEST_F(ProgramTest, SlowMachineWithOpenBlasIsNotToldToInstallIt) {
  Ranks ranks(MusterTrainWith(Small({"--max-steps", "1", "--no-eval"})), 1,
              {"OPENBLAS_CORETYPE=Atom"});
  EXPECT_EQ(ranks.Wait(), std::vector<int>{0});
  EXPECT_EQ(ranks.errors().find("warning"), std::string::npos) << ranks.errors();
}

// A user trained 25 times slower than necessary, without any hint.
TEST_F(ProgramTest, TheReferenceBlasIsWarnedOf) {
  const fs::path folder = "/usr/lib/x86_64-linux-gnu/blas";
  if (!fs::exists(folder / "libblas.so.3")) GTEST_SKIP() << "libblas3 is not installed";
  Ranks ranks(MusterTrainWith(Small({"--max-steps", "1", "--no-eval"})), 1,
              {"LD_LIBRARY_PATH=" + folder.string()});
  EXPECT_EQ(ranks.Wait(), std::vector<int>{0});
  const std::string errors = ranks.errors();
  EXPECT_NE(
      errors.find("by the reference BLAS (" + fs::canonical(folder / "libblas.so.3").string()),
      std::string::npos)
      << errors;
  EXPECT_NE(errors.find("install libopenblas0-pthread"), std::string::npos) << errors;
}

TEST_F(ProgramTest, WhatItExportsIsWhatItCanBeginWith) {
  TrainOk(Small({"--max-steps", "3", "--no-eval", "--export", dir_.Path("model.safetensors")}));
  const std::string trained = ReadAll(dir_.Path("model.pt"));
  // Under another name it was "not a file of torch.save".
  fs::copy_file(dir_.Path("model.safetensors"), dir_.Path("model.weights"));
  for (const char* from : {"model.safetensors", "model.weights", "model.pt"}) {
    // With a tiny learning rate the model stays as it began, on both ranks.
    const std::string out = TrainOk(
        {"--dataset", "generated", "--model", "mlp", "--seed", "5", "--lr", "1e-30", "--max-steps",
         "1", "--no-eval", "--init-from", dir_.Path(from), "--checkpoint", dir_.Path("same.pt")},
        2);
    EXPECT_NE(out.find("All keys matched successfully"), std::string::npos) << out;
    EXPECT_TRUE(ReadAll(dir_.Path("same.pt")) == trained) << from;
  }
}

// `--parallel average` passed a rank's whole share through the model, ignoring --accumulate.
TEST_F(ProgramTest, AccumulatedPartsAreTheWholeBatch) {
  for (const char* way : {"ddp", "average"}) {
    SCOPED_TRACE(way);
    const auto losses = [&](const std::string& name, const std::string& parts) {
      TrainOk(Small({"--max-steps", "17", "--no-eval", "--dtype", "float64", "--accumulate", parts,
                     "--parallel", way, "--loss-log", dir_.Path(name), "--trace",
                     dir_.Path(name + ".json"), "--trace-steps", "2"}),
              2);
      std::ifstream log(dir_.Path(name));
      std::vector<double> values;
      for (double step, loss; log >> step >> loss;) values.push_back(loss);
      return values;
    };
    // Of both ranks, in two steps.
    const auto passes = [&](const std::string& name) {
      const auto trace = nlohmann::json::parse(ReadAll(dir_.Path(name + ".json")), nullptr, false);
      return std::count_if(trace.begin(), trace.end(),
                           [](const auto& event) { return event["name"] == "forward"; });
    };
    const std::vector<double> whole = losses("whole", "1");
    const std::vector<double> parts = losses("parts", "3");
    ASSERT_EQ(whole.size(), 17u);
    ASSERT_EQ(parts.size(), 17u);
    for (std::size_t i = 0; i < 17; ++i) EXPECT_NEAR(whole[i], parts[i], 1e-8) << i;
    EXPECT_EQ(passes("whole"), 4);
    EXPECT_EQ(passes("parts"), 12);
  }
}

TEST_F(ProgramTest, EveryModelTakesItsStep) {
  const std::vector<std::vector<std::string>> runs = {
      {"--model", "cnn", "--bf16"},
      {"--model", "resnet18", "--sync-bn", "--batch-size", "8"},
      {"--model", "gpt", "--algorithm", "adamw", "--lr", "0.001", "--layers", "1", "--context",
       "32", "--batch-size", "4"},
      {"--model", "mlp", "--parallel", "average", "--average-every", "2"},
      {"--model", "mlp", "--comm-hook", "bf16", "--no-bucket-view", "--optimizer", "reference"},
  };
  for (const std::vector<std::string>& run : runs) {
    std::vector<std::string> arguments =
        test::Joined({"--dataset", "generated", "--max-steps", "2", "--no-eval"}, run);
    const std::string out = TrainOk(arguments, 2);
    EXPECT_NE(out.find("(2 steps of "), std::string::npos) << run[1] << out;
  }
}

TEST_F(ProgramTest, ComparesTheWaysToShareTheWork) {
  test::Command compare(
      MusterTrainWith({"compare", "--launcher", "launcher/muster", "--ranks", "2", "--dataset",
                       "generated", "--model", "mlp", "--max-steps", "8", "--comm", "gloo"}));
  ASSERT_EQ(compare.Wait(std::chrono::seconds(240)), 0) << compare.err();
  // K is 1.077 MB; each of 2 ranks sends 2(N-1)K/N = K, which Gloo does not count, and threads move
  // 2(N-1)K = 2K.
  for (const char* line : {"\nsingle ", "\nthreads ", "\naverage ", "\nddp "}) {
    EXPECT_NE(compare.out().find(line), std::string::npos) << compare.out();
  }
  const std::size_t ddp = compare.out().find("\nddp ");
  EXPECT_NE(compare.out().find("    -        1.077", ddp), std::string::npos) << compare.out();
  const std::size_t threads = compare.out().find("\nthreads ");
  EXPECT_NE(compare.out().find("2.155        2.155", threads), std::string::npos) << compare.out();
}

TEST_F(ProgramTest, ComparingRefusesMistakesBeforeItStartsAnything) {
  for (const std::vector<std::string>& mistake : {std::vector<std::string>{"--ranks", "0"},
                                                  {"--methods", "magic"},
                                                  {"--epochs", "0"},
                                                  // The second method resumed what the first had
                                                  // trained to its end.
                                                  {"--checkpoint-dir", dir_.Path("compared")},
                                                  {"--metrics", dir_.Path("compared")},
                                                  {"--mesh", "tp=2"},
                                                  {"--scaling", "43", "--batch-size", "42"},
                                                  {"--ranks", "3", "--batch-size", "2"}}) {
    std::vector<std::string> arguments = test::Joined({"compare"}, mistake);
    test::Command compare(MusterTrainWith(arguments));
    EXPECT_EQ(compare.Wait(std::chrono::seconds(60)), 2) << mistake[0];
    EXPECT_EQ(compare.out(), "");
    EXPECT_NE(compare.err(), "");
  }
}

// A table of nan, with exit code 0.
TEST_F(ProgramTest, ComparingByALauncherThatStartsNothingIsAnError) {
  test::Command compare(MusterTrainWith({"compare", "--launcher", "/bin/true", "--methods",
                                         "single", "--dataset", "generated", "--model", "mlp"}));
  EXPECT_EQ(compare.Wait(std::chrono::seconds(60)), 1);
  EXPECT_NE(compare.err().find("single: /bin/true succeeded, but no training reported its speed"),
            std::string::npos)
      << compare.err();
}

// The results of the earlier methods were lost, and the exit code was 1.
TEST_F(ProgramTest, ComparingShowsWhatItHasWhenARankFindsAMistake) {
  test::Command compare(MusterTrainWith({"compare", "--launcher", "launcher/muster", "--methods",
                                         "ddp,tp", "--dataset", "generated", "--model", "mlp",
                                         "--max-steps", "2", "--no-eval"}));
  EXPECT_EQ(compare.Wait(std::chrono::seconds(120)), 2) << compare.err();
  EXPECT_NE(compare.out().find("\nddp "), std::string::npos) << compare.out();
  EXPECT_EQ(compare.out().find("\ntp "), std::string::npos) << compare.out();
}

TEST_F(ProgramTest, ComparingSaysWhereItLooksForTheLauncher) {
  test::Command nowhere(MusterTrainWith({"compare", "--dataset", "generated"}), {"PATH=/none"});
  EXPECT_EQ(nowhere.Wait(std::chrono::seconds(60)), 2);
  EXPECT_EQ(nowhere.out(), "");
  EXPECT_NE(nowhere.err().find("nor in PATH; name it with --launcher FILE\n"), std::string::npos)
      << nowhere.err();
  test::Command wrong(MusterTrainWith({"compare", "--launcher", "/none/muster"}));
  EXPECT_EQ(wrong.Wait(std::chrono::seconds(60)), 2);
  EXPECT_NE(wrong.err().find("--launcher /none/muster: there is no program of that name\n"),
            std::string::npos)
      << wrong.err();
}

TEST_F(ProgramTest, MistakesAreOneSentenceAndExitCodeTwo) {
  std::ofstream(dir_.Path("notes.txt")) << "short";
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes = {
      {{"--dataset", "text"}, "a text is needed"},
      {{"--dataset", "text", "--data", dir_.Path("notes.txt"), "--model", "gpt"}, "notes.txt"},
      {{"--dataset", "cifar10", "--data", dir_.path()}, "data_batch_1.bin"},
      {Small({"--model", "gpt", "--dataset", "idx"}), "gpt"},
      {Small({"--init-from", dir_.Path("none.pt")}), "none.pt"},
      {Small({"--init-from", dir_.Path("notes.txt")}), "notes.txt"},
      {Small({"--export", "/no/such/dir/m.safetensors"}), "/no/such/dir/m.safetensors"},
      {Small({"--metrics", "/no/such/dir/m"}), "/no/such/dir/m"},
      {Small({"--tensorboard", dir_.Path("notes.txt")}), "notes.txt"},
      {Small({"--checkpoint-dir", dir_.Path("notes.txt")}), "notes.txt"},
      {Small({"--schedule", "cosine", "--warmup-steps", "99", "--max-steps", "9"}), "warm"},
      {Small({"--config", dir_.Path("none.toml")}), "none.toml"},
  };
  for (const auto& [arguments, sentence] : mistakes) {
    SCOPED_TRACE(sentence);
    Ranks ranks(MusterTrainWith(arguments), 1);
    EXPECT_EQ(ranks.Wait(), std::vector<int>{2});
    const std::string errors = ranks.errors();
    EXPECT_EQ(errors.rfind("muster-train: ", 0), 0u) << errors;
    EXPECT_NE(errors.find(sentence), std::string::npos) << errors;
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
    EXPECT_FALSE(fs::exists(dir_.Path("model.pt")));
  }
}

TEST_F(ProgramTest, SaysHowManyTokensItTrainsOnAndHowMuchMemoryThatTakes) {
  const std::string out =
      TrainOk({"--dataset", "generated", "--model", "gpt", "--layers", "1", "--context", "32",
               "--batch-size", "4", "--max-steps", "4", "--no-eval", "--metrics",
               dir_.Path("m.jsonl"), "--checkpoint", dir_.Path("m.pt")});
  EXPECT_NE(out.find(" windows/s, "), std::string::npos) << out;
  EXPECT_NE(out.find(" tokens/s\n"), std::string::npos) << out;
  EXPECT_NE(out.find("peak memory    "), std::string::npos) << out;

  nlohmann::json latest = nlohmann::json::object();
  std::ifstream metrics(dir_.Path("m.jsonl"));
  for (std::string line; std::getline(metrics, line);) {
    latest.update(nlohmann::json::parse(line, nullptr, false));
  }
  for (const std::string run : {"train/", "summary/"}) {
    const double windows = latest[run + "samples_per_second"];
    EXPECT_NEAR(latest[run + "tokens_per_second"].get<double>() / windows, 32, 1e-6) << run;
  }
  EXPECT_GT(latest["summary/peak_memory_bytes"], 1e7);
  EXPECT_FALSE(latest.contains("summary/peak_gpu_bytes"));
}

// From a text to a GPT over tokens, each step by its command.
TEST_F(ProgramTest, TrainsOnTokensThatItHasMade) {
  std::string text;
  while (text.size() < 30'000) text += "The trainer's training of the trained, and that of 2026.\n";
  dir_.Write("a.txt", text);
  const std::string tokenizer = "test/trainer/text/testdata/gpt2.json";
  Ranks tokenize(MusterTrainWith({"tokenize", "--tokenizer", tokenizer, "--output",
                                  dir_.Path("a.bin"), dir_.Path("a.txt")}),
                 1);
  EXPECT_EQ(tokenize.Wait(), std::vector<int>{0}) << tokenize.errors();
  const auto train = [&](const std::vector<std::string>& data) {
    std::vector<std::string> arguments =
        test::Joined({"--model", "gpt", "--layers", "1", "--heads", "2", "--width", "16",
                      "--context", "16", "--max-steps", "5", "--loss-log", dir_.Path("losses"),
                      "--checkpoint", dir_.Path("model.pt")},
                     data);
    TrainOk(arguments, 2);
    return ReadAll(dir_.Path("losses"));
  };
  const std::string from_tokens =
      train({"--dataset", "tokens", "--data", dir_.Path("a.bin"), "--tokenizer", tokenizer});
  EXPECT_EQ(std::count(from_tokens.begin(), from_tokens.end(), '\n'), 5);
  EXPECT_EQ(train({"--data", dir_.Path("a.txt"), "--tokenizer", tokenizer}), from_tokens);
}

// A user saw that a rank had waited in vain, but not for which rank, nor in which operation.
TEST_F(ProgramTest, ATimeOutSaysWhereEachRankIs) {
  for (const char* comm : {"gloo", "shm"}) {
    SCOPED_TRACE(comm);
    BeatEar ear;
    Ranks ranks(MusterTrainWith(Small({"--epochs", "100000", "--comm", comm, "--timeout", "10"})),
                2, {ear.variable()});
    ASSERT_TRUE(ear.WaitForStep(5)) << ranks.errors();
    ranks[1].Signal(SIGSTOP);
    EXPECT_EQ(ranks[0].Wait(std::chrono::seconds(240)), 1);
    const std::string errors = ranks.errors();
    EXPECT_NE(errors.find(" in all-reduce "), std::string::npos) << errors;
    // The other one was stopped outside of an operation, in an earlier one, or in the same.
    const bool both = errors.find("rank 1 left ") != std::string::npos ||
                      errors.find("rank 1 waits in ") != std::string::npos ||
                      errors.find("ranks 0, 1 wait in ") != std::string::npos;
    EXPECT_TRUE(both) << errors;
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
  }
}

// A user saw "another rank is gone" but not where: the error file has the stack.
TEST_F(ProgramTest, TheErrorFileOfALostPeerHasMessageAndStack) {
  BeatEar ear;
  Ranks ranks(MusterTrainWith(Small({"--epochs", "100000", "--comm", "gloo"})), 2,
              {ear.variable(), "TORCHELASTIC_ERROR_FILE=" + dir_.Path("error.json")});
  ASSERT_TRUE(ear.WaitForStep(5)) << ranks.errors();
  ranks[1].Signal(SIGKILL);
  EXPECT_EQ(ranks.Wait(), (std::vector<int>{1, -SIGKILL}));
  const auto error = nlohmann::json::parse(ReadAll(dir_.Path("error.json")), nullptr, false);
  ASSERT_TRUE(error.is_object());
  const std::string message = error["message"]["message"];
  const std::string stack = error["message"]["extraInfo"]["py_callstack"];
  EXPECT_NE(message.find("training stopped in epoch "), std::string::npos) << message;
  EXPECT_NE(stack.find("muster-train"), std::string::npos) << stack;
  EXPECT_EQ(stack.substr(stack.size() - message.size()), message);
}

}  // namespace
}  // namespace muster::trainer
