// Training in a pipeline of real ranks against training in one process. The comparison is in
// pipeline_program.cc.
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <tuple>
#include <vector>

#include "test/support/command.h"
#include "test/support/process_scan.h"
#include "test/trainer/program.h"

namespace muster::trainer {
namespace {

using test::Command;

constexpr std::chrono::seconds kPipelineDeadline(120);
const std::string kProgram = "test/trainer/parallel/pipeline_program";

using Case =
    std::tuple<int, std::string, std::string, std::string>;  // ranks, schedule, chunks, model

class PipelineTest : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    All, PipelineTest,
    testing::Values(Case{1, "1f1b", "1", "gpt"}, Case{1, "interleaved", "2", "gpt"},
                    Case{2, "gpipe", "1", "gpt"}, Case{2, "1f1b", "1", "mlp"},
                    Case{2, "interleaved", "2", "gpt"}, Case{2, "zero-bubble", "1", "gpt"},
                    Case{4, "gpipe", "1", "mlp"}, Case{4, "1f1b", "1", "gpt"},
                    Case{4, "interleaved", "2", "gpt"}, Case{4, "interleaved", "2", "mlp"},
                    Case{4, "zero-bubble", "1", "gpt"}, Case{4, "zero-bubble", "1", "mlp"},
                    Case{4, "1f1b", "1", "mlp-bf16"}, Case{2, "1f1b", "1", "cnn"},
                    Case{2, "zero-bubble", "1", "cnn"}, Case{2, "interleaved", "2", "gpt-tied"},
                    Case{4, "1f1b", "1", "gpt-tied"}, Case{4, "zero-bubble", "1", "gpt-tied"},
                    Case{4, "1f1b", "1", "gpt-recomputed"},
                    Case{2, "zero-bubble", "1", "gpt-recomputed"}, Case{2, "rpc", "1", "gpt"},
                    Case{4, "rpc", "1", "gpt"}, Case{4, "rpc", "1", "gpt-tied"},
                    Case{2, "rpc", "1", "mlp-bf16"}),
    [](const auto& info) {
      std::string name = std::get<1>(info.param) + std::get<3>(info.param) +
                         std::to_string(std::get<0>(info.param));
      std::erase(name, '-');
      return name;
    });

TEST_P(PipelineTest, EqualsOneProcess) {
  const auto& [ranks, schedule, chunks, model] = GetParam();
  RunRanks({kProgram, "gloo", "60", "train", schedule, chunks, model}, ranks, kPipelineDeadline);
}

TEST(PipelineCommTest, MessagesMayGoThroughSharedMemory) {
  RunRanks({kProgram, "shm", "60", "train", "1f1b", "1", "gpt"}, 2, kPipelineDeadline);
  RunRanks({kProgram, "shm", "60", "train", "interleaved", "2", "cnn"}, 4, kPipelineDeadline);
  RunRanks({kProgram, "shm", "60", "train", "zero-bubble", "1", "gpt-tied"}, 4, kPipelineDeadline);
}

TEST(PipelineMemoryTest, KeepsLiveMicroBatchesAndNoMoreMessagesForMoreOfThem) {
  for (const int ranks : {2, 4}) {
    RunRanks({"test/trainer/parallel/pipeline_load_program", "memory"}, ranks, kPipelineDeadline);
  }
}

std::vector<Command> Start(const std::vector<std::string>& arguments, int world_size) {
  const int port = FreePort();
  std::vector<Command> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    std::vector<std::string> environment = {"GLOG_minloglevel=2"};
    for (const auto& [name, value] : RankVariables(rank, world_size, port)) {
      environment.push_back(name + "=" + value);
    }
    ranks.emplace_back(arguments, environment);
  }
  return ranks;
}

// Of four ranks, when one of them is killed.
void ExpectOthersEnd(const std::string& timeout, const std::string& schedule,
                     const std::vector<std::size_t>& victims) {
  for (const std::size_t victim : victims) {
    std::vector<Command> ranks = Start({kProgram, "gloo", timeout, "forever", schedule, "1"}, 4);
    ASSERT_TRUE(ranks[0].WaitForOut("training")) << ranks[0].err();
    ranks[victim].Signal(SIGKILL);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      EXPECT_EQ(ranks[rank].Wait(kPipelineDeadline), rank == victim ? -SIGKILL : 3)
          << ranks[rank].err();
      EXPECT_EQ(ranks[rank].err().find("lost: ") != std::string::npos, rank != victim);
    }
  }
}

TEST(PipelineLossTest, OthersEndWhenARankIsKilledInAStep) {
  ExpectOthersEnd("20", "1f1b", {0, 2, 3});
}

// Long before the timeout.
TEST(PipelineLossTest, OthersEndWhenTheMasterOrOneThatItCallsIsKilled) {
  ExpectOthersEnd("1000", "rpc", {0, 1, 3});
}

// Eight bytes from any host, sent to the port on which a rank accepted calls, crashed that rank.
TEST(PipelineLossTest, NobodyListensWhileRanksCallOneAnother) {
  std::vector<Command> ranks = Start({kProgram, "gloo", "1000", "forever", "rpc", "1"}, 3);
  ASSERT_TRUE(ranks[0].WaitForOut("training")) << ranks[0].err();
  // Rank 0 serves the store.
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    EXPECT_EQ(test::ListeningTcpSockets(ranks[rank].pid()), rank == 0 ? 1 : 0) << "rank " << rank;
  }
  for (Command& rank : ranks) rank.Signal(SIGKILL);
}

TEST(PipelineLossTest, TheMasterEndsWhenOneThatItCallsStandsStill) {
  // A shorter time is not enough to join on a busy machine.
  std::vector<Command> ranks = Start({kProgram, "gloo", "10", "forever", "rpc", "1"}, 3);
  ASSERT_TRUE(ranks[0].WaitForOut("training")) << ranks[0].err();
  ranks[1].Signal(SIGSTOP);
  EXPECT_EQ(ranks[0].Wait(kPipelineDeadline), 3);
  EXPECT_NE(ranks[0].err().find("nothing came from rank 1 within 10 s"), std::string::npos)
      << ranks[0].err();
  ranks[1].Signal(SIGKILL);
}

// A scheduler had paused the whole job for longer than --timeout: every rank timed out.
TEST(PipelineLossTest, AJobThatIsPausedAsAWholeGoesOn) {
  std::vector<Command> ranks = Start({kProgram, "gloo", "10", "forever", "rpc", "1"}, 3);
  ASSERT_TRUE(ranks[0].WaitForOut("training")) << ranks[0].err();
  for (int pause = 0; pause < 2; ++pause) {
    for (Command& rank : ranks) rank.Signal(SIGSTOP);
    EXPECT_EQ(Command({"sleep", "10.5"}).Wait(kPipelineDeadline), 0);
    for (Command& rank : ranks) rank.Signal(SIGCONT);
    // They go through some steps together.
    EXPECT_EQ(Command({"sleep", "0.5"}).Wait(), 0);
  }
  for (Command& rank : ranks) rank.Signal(SIGKILL);
  for (Command& rank : ranks) {
    EXPECT_EQ(rank.Wait(kPipelineDeadline), -SIGKILL);
    EXPECT_EQ(rank.err().find("lost: "), std::string::npos) << rank.err();
  }
}

TEST(PipelineLossTest, TheMasterRepeatsTheWordsOfARankThatFails) {
  std::vector<Command> ranks = Start({kProgram, "gloo", "20", "throw", "rpc", "1"}, 2);
  for (Command& rank : ranks) EXPECT_EQ(rank.Wait(kPipelineDeadline), 3) << rank.err();
  EXPECT_NE(ranks[0].err().find("lost: ask rank 1 for forward 0 of the pipeline: no more of it"),
            std::string::npos)
      << ranks[0].err();
  EXPECT_NE(ranks[1].err().find("lost: no more of it"), std::string::npos) << ranks[1].err();
}

TEST(PipelineLossTest, OutputsThatChangeTheirSizesAreOneSentence) {
  std::vector<Command> ranks = Start({kProgram, "gloo", "20", "change", "1f1b", "1"}, 2);
  for (Command& rank : ranks) EXPECT_EQ(rank.Wait(kPipelineDeadline), 3) << rank.err();
  EXPECT_NE(ranks[0].err().find("part 0 returned 2 x 2 Float, and 2 x 3 Float for other inputs of "
                                "the same sizes"),
            std::string::npos)
      << ranks[0].err();
  EXPECT_NE(ranks[1].err().find("lost: "), std::string::npos);
}

}  // namespace
}  // namespace muster::trainer
