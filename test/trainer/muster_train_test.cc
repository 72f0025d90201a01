// The muster-train program from outside: its output, its exit codes and the files it leaves.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "test/support/socket_dir.h"
#include "test/trainer/beat_listener.h"
#include "test/trainer/program.h"

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kDeadline(120);

class MusterTrainTest : public testing::Test {
 protected:
  MusterTrainTest()
      : dir_(fs::path(testing::TempDir()) /
             testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(dir_);
    fs::create_directories(dir_);
  }

  std::string Path(const std::string& name) const { return (dir_ / name).string(); }

  std::string Content(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(dir_ / name).rdbuf();
    return text.str();
  }

  // The number of files whose names begin with `name`.
  int FilesOf(const std::string& name) const {
    int files = 0;
    for (const auto& entry : fs::directory_iterator(dir_)) {
      if (entry.path().filename().string().starts_with(name)) ++files;
    }
    return files;
  }

  // muster-train on the generated data set with the small model, and `more`.
  std::vector<std::string> Train(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {MusterTrain(), "--dataset",    "generated",     "--model",
                                          "mlp",         "--checkpoint", Path("model.pt")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  const fs::path dir_;
};

TEST_F(MusterTrainTest, TrainsAloneWithoutALauncher) {
  Program program(Train({"--epochs", "2"}), {});
  ASSERT_EQ(program.Wait(kDeadline), 0) << program.errors();
  for (const char* line :
       {"epoch 2/2: 100 %, step 17/17, loss ", "world size     1 (gloo)\n", "restarts       0\n",
        "epochs         2 (34 steps of 128 images)\n", "train loss     ", "test accuracy  ",
        "speed          ", "checkpoint     "}) {
    EXPECT_NE(program.output().find(line), std::string::npos) << line << program.output();
  }
  EXPECT_EQ(FilesOf("model.pt"), 1);
  EXPECT_EQ(program.errors(), "");
}

TEST_F(MusterTrainTest, OnlyRankZeroSpeaksAndWrites) {
  const std::vector<Program> ranks = RunRanks(
      Train({"--epochs", "2", "--max-steps", "20", "--loss-log", Path("loss")}), 2, kDeadline);
  EXPECT_NE(ranks[0].output().find("world size     2 ("), std::string::npos);
  EXPECT_NE(ranks[0].output().find("(20 steps of 128 images)\n"), std::string::npos);
  EXPECT_EQ(ranks[1].output(), "");
  EXPECT_EQ(ranks[0].errors() + ranks[1].errors(), "");
  const std::string losses = Content("loss");
  EXPECT_EQ(std::count(losses.begin(), losses.end(), '\n'), 20) << losses;
  EXPECT_EQ(losses.rfind("1 2.", 0), 0u) << losses;  // about ln 10, as for any untrained model
}

TEST_F(MusterTrainTest, TellsItsLauncherOfEachStep) {
  const test::SocketDir sockets;
  BeatListener listener(sockets.Path("beats"));
  Program program(Train({"--max-steps", "4"}), {{"MUSTER_BEAT_SOCKET", sockets.Path("beats")}});
  ASSERT_EQ(program.Wait(kDeadline), 0) << program.errors();
  std::vector<std::string> beats = listener.Receive();
  ASSERT_GT(beats.size(), 5u) << "those of the evaluation come last";
  EXPECT_EQ(beats[0], "beat 0 0") << "when the model is made";
  for (int step = 1; step <= 4; ++step) {
    const std::string& beat = beats[static_cast<std::size_t>(step)];
    const std::string begin = "beat 0 " + std::to_string(step) + " ";
    EXPECT_EQ(beat.substr(0, begin.size()), begin);
    for (const char* const word : {" samples_per_second=", " data=", " forward=", " backward=",
                                   " optimizer=", " other=", " wait="}) {
      EXPECT_NE(beat.find(word), std::string::npos) << beat;
    }
  }
}

TEST_F(MusterTrainTest, LearnsTheGeneratedImages) {
  const std::vector<Program> ranks = RunRanks(Train({"--epochs", "3"}), 2, kDeadline);
  const std::string& output = ranks[0].output();
  const std::size_t at = output.find("test accuracy  ");
  ASSERT_NE(at, std::string::npos) << output;
  EXPECT_GE(std::stod(output.substr(at + 15)), 95) << output;
}

TEST_F(MusterTrainTest, RefusesMistakesInOneSentenceWithExitCodeTwo) {
  std::ofstream(dir_ / "train-images-idx3-ubyte") << "no magic here";
  const Program::Variables two_ranks = {
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "1"}};
  struct Case {
    std::vector<std::string> arguments;
    Program::Variables variables;
    std::string sentence;
  };
  const Case cases[] = {
      {{"--data", "/no/such/dir"}, {}, "read data from /no/such/dir: no such directory"},
      {{"--data", dir_.string()}, {}, "not an IDX file of unsigned bytes"},
      {{"--learning-rate", "1"}, {}, "there is no flag --learning-rate; did you mean --lr?"},
      {{"generat", "--prompt", "x"}, {}, "there is no command 'generat'; did you mean generate?"},
      {{"tokenize", "--tokeniser", "x"},
       {},
       "tokenize: there is no flag --tokeniser; did you mean --tokenizer?"},
      {{"eval", "--checkpoint", "x", "--learning-rate", "1"}, {}, "did you mean --lr?"},
      {{"eval", "--checkpoint", "x", "--jsn"}, {}, "did you mean --json?"},
      {{"compare", "--rank", "2"}, {}, "there is no flag --rank; did you mean --ranks?"},
      {{"--batch-size", "1", "--timeout", "1"},
       two_ranks,
       "rank 1: --batch-size 1 has no sample for each of 2 ranks"},
      {{}, {{"RANK", "one"}, {"WORLD_SIZE", "2"}}, "RANK=one is not a whole number"},
      {{"--checkpoint", "/no/such/dir/m.pt"}, {}, "write /no/such/dir/m.pt: No such file"},
      {{"--loss-log", "/no/such/dir/l"}, {}, "write /no/such/dir/l"},
      {{"--dataset", "generated", "--comm", "nccl"}, {}, "--comm nccl: "},
      // Both were written, the second over the first, with exit code 0.
      {{"--checkpoint", Path("x.pt"), "--export", dir_.string() + "/./x.pt"},
       {},
       "/./x.pt: --checkpoint and --export name the same file"},
      {{"--loss-log", Path("y"), "--metrics", Path("y")},
       {},
       "y: --loss-log and --metrics name the same file"},
  };
  for (const Case& mistake : cases) {
    SCOPED_TRACE(mistake.sentence);
    std::vector<std::string> arguments = {MusterTrain()};
    arguments.insert(arguments.end(), mistake.arguments.begin(), mistake.arguments.end());
    // If the program did not refuse, it would leave its checkpoint here.
    if (std::count(arguments.begin(), arguments.end(), "--checkpoint") == 0) {
      arguments.insert(arguments.end(), {"--checkpoint", Path("model.pt")});
    }
    Program::Variables variables = mistake.variables;
    variables["TORCHELASTIC_ERROR_FILE"] = Path("error.json");
    Program program(arguments, variables);
    EXPECT_EQ(program.Wait(kDeadline), 2);
    const std::string errors = program.errors();
    EXPECT_EQ(errors.rfind("muster-train: ", 0), 0u) << errors;
    EXPECT_NE(errors.find(mistake.sentence), std::string::npos) << errors;
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
    EXPECT_NE(Content("error.json").find(mistake.sentence), std::string::npos);
    EXPECT_EQ(FilesOf("model.pt"), 0);
  }
}

TEST_F(MusterTrainTest, SaysWhoDidNotArrive) {
  Program program(Train({"--timeout", "1"}), RankVariables(0, 2, FreePort()));
  EXPECT_EQ(program.Wait(kDeadline), 1);
  EXPECT_NE(program.errors().find("rank 1 did not arrive"), std::string::npos) << program.errors();
}

// A user stopped a job that was still waiting for a node, and its ranks did not react for five
// minutes.
TEST_F(MusterTrainTest, EndsAtOnceWhenItIsStoppedWhileItJoins) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    const HeldPort store;  // it accepts connections and never answers
    Program::Variables variables = RankVariables(1, 2, store.number());
    variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
    Program program(Train({"--timeout", "60"}), variables);
    ASSERT_TRUE(store.WaitForCaller(kDeadline)) << program.errors();
    program.Signal(signal);
    EXPECT_EQ(program.Wait(kDeadline), 128 + signal) << program.errors();
  }
}

TEST_F(MusterTrainTest, SaysThatTheStoresPortIsTaken) {
  const HeldPort port;
  Program program(Train(), RankVariables(0, 2, port.number()));
  EXPECT_EQ(program.Wait(kDeadline), 1);
  const std::string sentence = "serve the store at 127.0.0.1:" + std::to_string(port.number()) +
                               ": address already in use\n";
  EXPECT_NE(program.errors().find(sentence), std::string::npos) << program.errors();
}

// A rank is killed in the middle of the training: the others exit by themselves, with a sentence
// and an error file, not with an abort.
TEST_F(MusterTrainTest, RanksEndCleanlyWhenAPeerIsKilled) {
  const int port = FreePort();
  std::vector<Program> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    Program::Variables variables = RankVariables(rank, 3, port);
    variables["TORCHELASTIC_ERROR_FILE"] = Path("error" + std::to_string(rank));
    ranks.emplace_back(Train({"--batch-size", "96", "--epochs", "100000"}), variables);
  }
  ASSERT_TRUE(ranks[0].WaitForOutput("epoch 2/", kDeadline)) << ranks[0].errors();
  ranks[1].Kill();
  EXPECT_EQ(ranks[1].Wait(kDeadline), 137);
  for (const int rank : {0, 2}) {
    Program& program = ranks[static_cast<std::size_t>(rank)];
    EXPECT_EQ(program.Wait(kDeadline), 1) << program.errors();
    const std::string errors = program.errors();
    EXPECT_EQ(
        errors.rfind("muster-train: rank " + std::to_string(rank) + ": training stopped in", 0), 0u)
        << errors;
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
    EXPECT_NE(Content("error" + std::to_string(rank)).find("training stopped in"),
              std::string::npos);
  }
  EXPECT_FALSE(fs::exists(Path("model.pt")));
}

// With TORCHELASTIC_USE_AGENT_STORE=True another process serves the store; here Python does, in
// place of the launcher.
TEST_F(MusterTrainTest, RanksMeetInTheAgentsStore) {
  if (!PythonHasTorch()) GTEST_SKIP() << "needs Debian's python3-torch";
  const int port = FreePort();
  Program server({"/usr/bin/python3", "-c",
                  "import torch.distributed as d, sys\n"
                  "s = d.TCPStore('127.0.0.1', int(sys.argv[1]), None, True, "
                  "wait_for_workers=False)\n"
                  "print('serving', flush=True)\n"
                  "s.wait(['done'])\n",
                  std::to_string(port)},
                 {});
  ASSERT_TRUE(server.WaitForOutput("serving", kDeadline)) << server.errors();
  std::vector<Program> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    Program::Variables variables = RankVariables(rank, 2, port);
    variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
    variables["TORCHELASTIC_RESTART_COUNT"] = "3";
    ranks.emplace_back(Train({"--max-steps", "3"}), variables);
  }
  for (Program& program : ranks) EXPECT_EQ(program.Wait(kDeadline), 0) << program.errors();
  EXPECT_NE(ranks[0].output().find("restarts       3\n"), std::string::npos);
}

}  // namespace
}  // namespace muster::trainer
