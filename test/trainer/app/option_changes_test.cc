// How a resumed run treats options that differ from those of its checkpoint.
#include "trainer/app/training/snapshot.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

Options Parsed(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "muster-train");
  const auto options = ParseOptions(static_cast<int>(arguments.size()), arguments.data());
  EXPECT_TRUE(options.ok()) << options.status();
  return options.value_or(Options());
}

// The options as stored in a checkpoint of a run.
Dict Written(const Options& options) {
  Dict snapshot;
  snapshot.Set("model_name", options.model.name);
  snapshot.Set("model_flags", FlagsValue(ModelFlags(options)));
  snapshot.Set("options", OptionsValue(options.settings));
  return snapshot;
}

// The sentence that refuses the checkpoint, or else those for the user, one per line.
std::string Outcome(const Value& snapshot, const Options& options) {
  const auto sentences = CompareOptions(snapshot, options);
  if (!sentences.ok()) return std::string(sentences.status().message());
  std::string lines;
  for (const std::string& sentence : *sentences) lines += sentence + "\n";
  return lines;
}

TEST(OptionChangesTest, TheSameOptionsNeedNoWord) {
  const Options options = Parsed({"--lr", "0.5", "--model", "gpt", "--data", "my.txt", "--flip"});
  EXPECT_EQ(Outcome(Written(options), options), "");
  EXPECT_EQ(Outcome(Written(options),
                    Parsed({"--lr", "5e-1", "--model", "gpt", "--data", "my.txt", "--flip"})),
            "");
}

TEST(OptionChangesTest, WhatIsLearnedOtherwiseIsSaidInOneLine) {
  const Options before = Parsed({"--lr", "0.1", "--flip", "--checkpoint-dir", "a"});
  EXPECT_EQ(
      Outcome(Written(before), Parsed({"--lr", "0.01", "--epochs", "3", "--threads", "2"})),
      "--flip was true and is false now; --epochs was 1 and is 3 now; --lr was 0.1 and is 0.01 "
      "now\n");
}

TEST(OptionChangesTest, AnotherModelOrOtherDataAreRefused) {
  const Options gpt = Parsed({"--model", "gpt", "--data", "my.txt", "--heads", "2"});
  EXPECT_EQ(Outcome(Written(gpt), Parsed({"--model", "gpt", "--data", "my.txt"})),
            "it was made with --heads 2, and this run has 4");
  EXPECT_EQ(Outcome(Written(Parsed({})), Parsed({"--model", "mlp"})),
            "it was made with --model cnn, and this run has mlp");
  EXPECT_EQ(Outcome(Written(Parsed({})), Parsed({"--dtype", "float64"})),
            "it was made with --dtype float32, and this run has float64");
}

// Changes each flag once: a new option must be given a rule here.
TEST(OptionChangesTest, EachFlagIsRefusedOrSaidOrOfNoConsequence) {
  const std::set<std::string> refused = {"--dataset", "--target", "--dtype", "--algorithm",
                                         "--qat"};
  const std::set<std::string> silent = {
      "--loader-threads", "--threads",         "--recompute",   "--eval",
      "--loss-scale",     "--parallel",        "--comm",        "--timeout",
      "--bucket-mb",      "--first-bucket-mb", "--bucket-view", "--find-unused-parameters",
      "--static-graph",   "--average-every",   "--replicas"};
  const Options options = Parsed({});
  for (const Setting& setting : options.settings) {
    Dict flags = *OptionsValue(options.settings).dict();
    flags.Set(setting.flag, "other");
    Dict snapshot = Written(options);
    snapshot.Set("options", flags);
    const std::string outcome = Outcome(snapshot, options);
    const bool free =
        setting.group == "Mesh" || setting.group == "Checkpoints" || setting.group == "Reports";
    if (refused.count(setting.flag) != 0) {
      EXPECT_EQ(outcome,
                "it was made with " + setting.flag + " other, and this run has " + setting.value);
    } else if (silent.count(setting.flag) != 0 || free) {
      EXPECT_EQ(outcome, "") << setting.flag;
    } else {
      const std::string now = setting.value.empty() ? "not given" : setting.value;
      EXPECT_EQ(outcome, setting.flag + " was other and is " + now + " now\n");
    }
  }
}

TEST(OptionChangesTest, AnOlderCheckpointIsResumedWithAWarning) {
  const Options gpt = Parsed({"--model", "gpt", "--data", "my.txt"});
  Dict older;
  older.Set("model_name", "gpt");
  EXPECT_EQ(Outcome(older, gpt),
            "warning: an older muster-train wrote this checkpoint and left out its options "
            "(--layers, --heads, --width, --context, --vocabulary): make sure that they are what "
            "they were\n");
  older.Set("model_flags", FlagsValue(ModelFlags(gpt)));
  EXPECT_EQ(Outcome(older, gpt),
            "warning: an older muster-train wrote this checkpoint and left out its options: make "
            "sure that they are what they were\n");
}

// A flag that is newer than the checkpoint had its default value then.
TEST(OptionChangesTest, ANewFlagWasAtItsDefault) {
  const Options clipped = Parsed({"--clip", "1"});
  const Value all = OptionsValue(clipped.settings);
  Dict flags;
  for (const auto& [flag, value] : *all.dict()) {
    if (ToString(flag) != "'--clip'") flags.Set(flag, value);
  }
  Dict snapshot = Written(clipped);
  snapshot.Set("options", flags);
  EXPECT_EQ(Outcome(snapshot, clipped), "--clip was 0 and is 1 now\n");
}

}  // namespace
}  // namespace muster::trainer
