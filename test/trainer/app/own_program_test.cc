// A program with its own model, from outside: its errors when its recipe or its user makes a
// mistake, as a single process and as ranks.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"
#include "test/trainer/app/command_words.h"
#include "test/trainer/ranks.h"
#include "trainer/io/torch_file.h"

namespace muster::trainer {
namespace {

Arguments Own(const Arguments& more) {
  return test::Joined({"test/trainer/app/own_program"}, more);
}

Arguments Training(const Arguments& more = {}) {
  return test::Joined(Own({"--batch-size", "16", "--max-steps", "2", "--comm", "gloo"}), more);
}

class OwnProgramTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = std::make_unique<test::TempDir>();
    Ranks ranks(Training({"--units", "3", "--checkpoint-dir", dir_->Path("run")}), 1);
    EXPECT_EQ(ranks.Wait(), std::vector<int>{0}) << ranks.errors();
  }
  static void TearDownTestSuite() { dir_.reset(); }

  static Arguments Eval(const Arguments& more = {}) {
    return test::Joined(Own({"eval", "--checkpoint", dir_->Path("run"), "--comm", "gloo"}), more);
  }

  static inline std::unique_ptr<test::TempDir> dir_;
};

// Expects all of `ranks` to exit with `code`: rank `unfit` with `sentence`, and the others naming
// it as the reason.
void ExpectUnfit(Ranks& ranks, int unfit, const std::string& sentence, int code) {
  EXPECT_EQ(ranks.Wait(), (std::vector<int>{code, code})) << ranks.errors();
  for (const int rank : {0, 1}) {
    std::string begin = "own_program: rank " + std::to_string(rank) + ": ";
    if (rank != unfit) begin += "rank " + std::to_string(unfit) + " cannot take part: ";
    const std::string error = ranks[rank].err();
    EXPECT_EQ(error.rfind(begin, 0), 0u) << error;
    EXPECT_NE(error.find(sentence), std::string::npos) << error;
    EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 1) << error;
  }
}

// "The model was made with --units=3, and --units=1 was given": the empty --note took --units=3 as
// its value.
TEST_F(OwnProgramTest, EvalTakesAnEmptyTextFromTheCheckpoint) {
  Ranks ranks(Eval(), 1);
  EXPECT_EQ(ranks.Wait(), std::vector<int>{0}) << ranks.errors();
}

// The other rank waited until --timeout.
TEST_F(OwnProgramTest, ARecipeThatThrowsOnOneRankEndsAllAtOnce) {
  for (const char* where : {"data", "flags"}) {
    for (const int unfit : {0, 1}) {
      Ranks ranks(Training(), 2, {"OWN_TROUBLE=" + std::to_string(unfit) + " " + where});
      ExpectUnfit(ranks, unfit, std::string("the ") + where + " cannot be had", 1);
    }
  }
}

// SIGABRT and "terminate called", without a word to the launcher: NCCL reports a lost peer by an
// exception in its own thread.
TEST_F(OwnProgramTest, AnExceptionInAnyThreadEndsTheProcessWithASentence) {
  const std::string error_file = dir_->Path("error.json");
  Ranks ranks(
      Training(), 1,
      {"RANK=0", "WORLD_SIZE=1", "OWN_TROUBLE=0 thread", "TORCHELASTIC_ERROR_FILE=" + error_file});
  EXPECT_EQ(ranks.Wait(), std::vector<int>{1});
  const std::string sentence = "rank 0: a thread ended with an exception: the thread cannot be had";
  EXPECT_EQ(ranks[0].err(), "own_program: " + sentence + "\n");
  std::ifstream file(error_file);
  const std::string written{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(written.find(sentence), std::string::npos) << written;
}

TEST_F(OwnProgramTest, AMistakeOnOneRankOfEvalEndsAllAtOnce) {
  for (const int unfit : {0, 1}) {
    std::vector<Arguments> arguments(2, Eval());
    for (const Arguments& mistake : {Arguments{"--bogus"}, Arguments{"--checkpoint"}}) {
      std::vector<Arguments> with = arguments;
      Arguments& own = with[static_cast<std::size_t>(unfit)];
      own.insert(own.end(), mistake.begin(), mistake.end());
      Ranks ranks(with);
      ExpectUnfit(ranks, unfit, mistake[0], 2);
    }
    Ranks ranks(arguments, {"OWN_TROUBLE=" + std::to_string(unfit) + " flags"});
    ExpectUnfit(ranks, unfit, "the flags cannot be had", 1);
  }
}

// The other rank reported that a connection was reset.
TEST_F(OwnProgramTest, DataThatThrowOnOneRankOfEvalAreNamedByAll) {
  Ranks ranks(Eval(), 2, {"OWN_TROUBLE=1 data"});
  EXPECT_EQ(ranks.Wait(), (std::vector<int>{1, 1})) << ranks.errors();
  EXPECT_EQ(ranks[0].err(),
            "own_program: rank 0: on rank 1: the data function of line: the data cannot be had\n");
}

// Options beyond the first 16 KB, or after a line break, were not compared.
TEST_F(OwnProgramTest, OptionsAreComparedHoweverLongTheyAre) {
  const std::string advice = ": give all ranks the same options\n";
  const std::string another = "rank 1 has another --note than rank 0" + advice;
  const std::string text(20'000, 'a');
  const struct {
    Arguments first, second;
    std::string sentence;
  } cases[] = {
      {{"--note", text + "b"}, {"--note", text + "c"}, another},
      {{"--note", "one\ntwo"}, {"--note", "one\nthree"}, another},
      {{"--note", text, "--lr", "0.1"},
       {"--note", text, "--lr", "0.2"},
       "rank 1 has --lr 0.2, and rank 0 has 0.1" + advice},
  };
  for (const auto& [first, second, sentence] : cases) {
    Ranks ranks({Training(first), Training(second)});
    EXPECT_EQ(ranks.Wait(), (std::vector<int>{2, 2})) << ranks.errors();
    EXPECT_EQ(ranks[0].err(), "own_program: rank 0: " + sentence);
    EXPECT_EQ(ranks[1].err(), "own_program: rank 1: " + sentence);
  }
}

// A checkpoint's model flags were passed to the command line unchecked.
TEST_F(OwnProgramTest, ACheckpointGivesNoFlagsButThoseOfItsModel) {
  const auto whole = ReadTorchFile(dir_->Path("run/step-000000000002.pt"));
  ASSERT_TRUE(whole.ok()) << whole.status();
  const std::string forged = dir_->Path("forged.pt");
  const auto end = "', and line has no such flag: it was made by another program, or is damaged\n";
  const std::string begin = "own_program: take the model from " + forged + ": it";
  for (const auto& [flag, value, sentence] : std::vector<std::array<std::string, 3>>{
           {"--config", dir_->Path("no"), begin + " gives the model the flag '--config" + end},
           {"--help", "", begin + " gives the model the flag '--help" + end},
           {"--checkpoint", "x", begin + " gives the model the flag '--checkpoint" + end},
           {"--lr", "1", begin + " gives the model the flag '--lr" + end},
           {"", "x", begin + " gives the model the flag '" + end},
           {"--note", std::string("a\0--help", 8),
            begin + "s value of --note holds a zero byte: the file is damaged\n"}}) {
    Value::Dict checkpoint = *whole->dict();
    Value::Dict flags = *checkpoint.Find("model_flags")->dict();
    flags.Set(flag, value);
    checkpoint.Set("model_flags", flags);
    ASSERT_TRUE(WriteTorchFile(checkpoint, forged).ok());
    Ranks ranks(Own({"eval", "--checkpoint", forged}), 1);
    EXPECT_EQ(ranks.Wait(), std::vector<int>{2});
    EXPECT_EQ(ranks[0].out(), "");
    EXPECT_EQ(ranks[0].err(), sentence);
  }
}

// It mentioned muster-train, which its user may not have, and the heads of a gpt.
TEST_F(OwnProgramTest, ItCallsItselfByItsOwnName) {
  for (const Arguments& words :
       {Arguments{"--help"}, Arguments{"eval", "--help"}, Arguments{"consolidate", "--help"}}) {
    Ranks ranks(Own(words), 1);
    EXPECT_EQ(ranks.Wait(), std::vector<int>{0}) << ranks.errors();
    EXPECT_NE(ranks[0].out().find("own_program"), std::string::npos) << ranks[0].out();
    for (const char* other : {"muster-train", "gpt", "--dataset"}) {
      EXPECT_EQ(ranks[0].out().find(other), std::string::npos) << ranks[0].out();
    }
  }
  const std::string config = test::ReadAll(dir_->Path("run/config.toml"));
  EXPECT_EQ(config.rfind("# The options of a run of own_program, ", 0), 0u) << config;
  const std::string torn = dir_->Path("torn");
  std::filesystem::create_directory(torn);
  std::filesystem::copy(dir_->Path("run"), torn, std::filesystem::copy_options::recursive);
  std::ofstream(torn + "/step-000000000003.pt") << "torn";
  std::filesystem::remove(torn + "/latest");
  for (const Arguments& words : {Arguments{"eval", "--checkpoint", torn},
                                 Arguments{"consolidate", torn, "--out", dir_->Path("one.pt")}}) {
    Ranks ranks(Own(words), 1);
    EXPECT_EQ(ranks.Wait(), std::vector<int>{0}) << ranks.errors();
    EXPECT_EQ(ranks[0].err().rfind("own_program: warning: ", 0), 0u) << ranks[0].err();
  }
}

}  // namespace
}  // namespace muster::trainer
