// What `muster top` shows, row by row, without a terminal.
#include "launcher/top/view.h"

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "test/launcher/top/jobs.h"

namespace muster::launcher {
namespace {

using rendezvous::JobSnapshot;
using rendezvous::JobState;
using rendezvous::LogText;
using rendezvous::NodeState;
using rendezvous::TimePoint;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;
using ::testing::StartsWith;
using Kind = Key::Kind;

constexpr TimePoint kViewNow{seconds(1000)};
constexpr ScreenSize kViewTerminal{.columns = 80, .rows = 24};

TopState Watching(const std::vector<JobSnapshot>& jobs, const std::string& run_id = "") {
  TopState state = BeginTop("10.0.0.1:29400", run_id);
  OnJobs(state, {.jobs = jobs}, kViewNow);
  return state;
}

std::vector<std::string> Seen(const TopState& state, const ScreenSize& size = kViewTerminal,
                              TimePoint now = kViewNow) {
  const Screen screen = DrawTop(state, size, now);
  EXPECT_EQ(screen.lines.size(), static_cast<std::size_t>(size.rows));
  for (const ScreenLine& line : screen.lines) {
    int columns = 0;
    for (const Span& span : line) columns += base::Columns(span.text);
    EXPECT_LE(columns, size.columns) << (line.empty() ? "" : line.front().text);
  }
  return Rows(screen);
}

void Press(TopState& state, std::vector<Key> keys, const ScreenSize& size = kViewTerminal) {
  for (const Key& key : keys) EXPECT_FALSE(PressKey(state, key, size));
}

TEST(TopViewTest, AllJobsAreAList) {
  JobSnapshot waiting{.run_id = "small",
                      .sentence = "round 0: 0 of 1 nodes are here",
                      .settings = {.min_nodes = 1, .max_nodes = 1}};
  const auto rows = Seen(Watching({RestartedJob(), waiting}));
  EXPECT_EQ(rows[0], "muster top  10.0.0.1:29400" + std::string(50, ' ') + "live");
  EXPECT_EQ(rows[1], "  JOB    STATE      ROUND  NODES   RANKS  RESTARTS  MESSAGE");
  EXPECT_EQ(rows[2],
            "> big    running    1      2 of 2  8      1 of 3    round 1 has 2 nodes: 0=node0");
  EXPECT_EQ(rows[3],
            "  small  gathering  0      0 of 1  -      0 of 0    round 0: 0 of 1 nodes are he");
  EXPECT_EQ(rows[4], "");
  EXPECT_THAT(rows[23], StartsWith("Up/Down choose"));
}

TEST(TopViewTest, JobIsItsRanksItsRoundsAndTheirCauses) {
  const TopState state = Watching({RestartedJob()}, "big");
  EXPECT_THAT(
      Seen(state),
      ElementsAre(
          "muster top  10.0.0.1:29400" + std::string(50, ' ') + "live",
          "big  running  round 1  nodes 2 of 2  ranks 8  restarts 1 of 3  age 5 min 12 s  g",
          "round 1 has 2 nodes: 0=node0, 1=node1",
          "r run  g straggler  t trouble  s start  w wait  x stop  d done  ! fail  R before",
          "node0      0  rrrr", "node1      4  rRrr", "> rank 0 on node0, local rank 0: running",
          "  has not failed in these rounds", "[ROUNDS]  NODES   STEPS   OUTPUT",
          "  ROUND  BEGAN           GATHERED  RAN         NODES  RANKS  - gathered  = ran",
          "  1      4 min 11 s ago  1.2 s     4 min 10 s  2      8      -================",
          "  0      5 min 12 s ago  40 ms     61 s        2      8      -====",
          "    over: rank 5 on host node1 exited with code 1 (restart 1 of 3)", "", "", "", "", "",
          "", "", "", "", "",
          "Arrows choose  Enter rank  o output  Tab other panes  Esc jobs  ? help  q quit"));
}

TEST(TopViewTest, ChosenRankSaysHowOftenItHasFailedAndWhy) {
  TopState state = Watching({RestartedJob()}, "big");
  Press(state, {{Kind::kDown}, {Kind::kRight}});
  const auto rows = Seen(state);
  EXPECT_EQ(rows[6], "> rank 5 on node1, local rank 1: running");
  EXPECT_EQ(rows[7],
            "  has failed once, last in round 0: rank 5 on host node1 exited with code 1 (res");
  const Screen screen = DrawTop(state, kViewTerminal, kViewNow);
  EXPECT_EQ(screen.cursor, (ScreenPlace{.row = 5, .column = 15})) << "where there is no reverse";
  Press(state, {{Kind::kEnter}});
  const auto rank = Seen(state);
  EXPECT_THAT(rank, Contains("RANK          rank 5"));
  EXPECT_THAT(rank, Contains("HOST          node1 (10.0.0.2)"));
  EXPECT_THAT(rank, Contains("DEVICES       1"));
  EXPECT_THAT(rank, Contains("has failed once:"));
  EXPECT_THAT(
      rank,
      Contains("  round 0, 5 min 12 s ago: rank 5 on host node1 exited with code 1 (restart 1 of"));
  Press(state, {{Kind::kRight}});
  EXPECT_THAT(Seen(state), Contains("RANK          rank 6"));
  Press(state, {{Kind::kEscape}, {Kind::kEscape}});
  EXPECT_THAT(Seen(state)[2], StartsWith("> big"));
}

// Nothing may be said by a colour alone.
TEST(TopViewTest, FailedRankIsACharacterOfItsOwnUntilItRunsAgain) {
  JobSnapshot job = RestartedJob();
  job.rounds.pop_back();
  job.rounds.back().end.reset();
  job.state = JobState::kEnded;
  EXPECT_EQ(Seen(Watching({job}, "big"))[5], "node1      4  r!rr");
  // The next round gathers, and who will have which rank is not known.
  job = RestartedJob();
  job.state = JobState::kGathering;
  job.rounds.back().gathered.reset();
  for (auto& node : job.nodes) {
    node.state = NodeState::kStopping;
    node.group_rank = -1;
  }
  const auto rows = Seen(Watching({job}, "big"));
  EXPECT_EQ(rows[5], "node1      -  xxxx");
  EXPECT_EQ(rows[6], "> a future rank on node0, local rank 0: stopping");
  EXPECT_THAT(rows[10], HasSubstr("4 min 11 s ago  -         -  "));
}

// "Which of the ranks is it that all others wait for, and how far are they?"
TEST(TopViewTest, StepsAreShownOfRanksThatTellAndStragglersAreMarked) {
  JobSnapshot job = RestartedJob();
  for (int rank = 0; rank < 8; ++rank) {
    job.nodes[static_cast<std::size_t>(rank / 4)].ranks.push_back(
        {.rank = rank,
         .told = {.step = 1213, .loss = 2.31, .samples_per_second = 451, .step_seconds = 0.142}});
  }
  job.nodes[1].ranks[1].straggling = {.slower = 1.41, .phase = "data", .age = seconds(35)};
  job.nodes[1].ranks[2].straggling = {.slower = 0.5, .phase = "forward", .age = seconds(5)};
  TopState state = Watching({job}, "big");
  Press(state, {{Kind::kDown}, {Kind::kRight}});
  auto rows = Seen(state, kViewTerminal, kViewNow + seconds(3));
  EXPECT_EQ(rows[5], "node1      4  rGgr");
  EXPECT_EQ(rows[6],
            "> rank 5 on node1, local rank 1: running, step 1213, loss 2.31, straggler 141 %");
  Press(state, {{Kind::kTab}, {Kind::kTab}});
  rows = Seen(state, kViewTerminal, kViewNow + seconds(3));
  EXPECT_THAT(rows[8], HasSubstr("[STEPS]"));
  EXPECT_EQ(rows[9],
            "  RANK  HOST   STEP  LOSS  STRAGGLER                              STEP TIME  SAM");
  EXPECT_EQ(rows[14],
            "  4     node1  1213  2.31  -                                      142 ms     451");
  EXPECT_EQ(rows[15],
            "> 5     node1  1213  2.31  141 % slower, most in data, for 38 s   142 ms     451");
  Press(state, {{Kind::kEnter}});
  rows = Seen(state, kViewTerminal, kViewNow + seconds(3));
  EXPECT_THAT(rows, Contains("STEP          1213"));
  EXPECT_THAT(rows, Contains("LOSS          2.31"));
  EXPECT_THAT(rows, Contains("STRAGGLER     141 % slower, most in data, for 38 s"));
}

// "`muster status` said that rank 5 was stopped, and top that all was well."
TEST(TopViewTest, RankInTroubleIsMarkedAndSaysWhatItIs) {
  JobSnapshot job = RestartedJob();
  job.nodes[0].state_ago = seconds(250);
  job.nodes[0].alerts = {{.rank = 2,
                          .told = {.kind = rendezvous::RankAlertKind::kStopped,
                                   .what = "was stopped by SIGSTOP",
                                   .ago = seconds(12)}}};
  job.nodes[1].alerts = {{.rank = 5, .told = {.what = "gave no sign of life for 60 s"}}};
  TopState state = Watching({job}, "big");
  auto rows = Seen(state);
  EXPECT_EQ(rows[4], "node0      0  rrtr");
  EXPECT_EQ(rows[5], "node1      4  rTrr") << "a capital, as it has failed before";
  Press(state, {{Kind::kRight}, {Kind::kRight}});
  EXPECT_EQ(Seen(state, kViewTerminal, kViewNow + seconds(3))[6],
            "> rank 2 on node0, local rank 2: running, was stopped by SIGSTOP 15 s ago");
  Press(state, {{Kind::kEnter}});
  rows = Seen(state, kViewTerminal, kViewNow + seconds(3));
  EXPECT_THAT(rows, Contains("STATE         running for 4 min 13 s"));
  EXPECT_THAT(rows, Contains("TROUBLE       was stopped by SIGSTOP 15 s ago"));
  Press(state, {{Kind::kLeft}});
  EXPECT_THAT(Seen(state), Not(Contains(StartsWith("TROUBLE"))));
}

TEST(TopViewTest, WhereNoRankTellsOfItsStepsItIsSaid) {
  TopState state = Watching({RestartedJob()}, "big");
  Press(state, {{Kind::kTab}, {Kind::kTab}});
  EXPECT_EQ(Seen(state)[9], "no rank reports its steps");
}

TEST(TopViewTest, TimesGoOnUntilTheRendezvousIsOutOfTouch) {
  TopState state = Watching({RestartedJob()}, "big");
  EXPECT_THAT(Seen(state, kViewTerminal, kViewNow + seconds(60))[1], HasSubstr("age 6 min 12 s"));
  OnOutOfTouch(state, "10.0.0.1:29400: nothing is listening there (Connection refused)",
               kViewNow + seconds(10));
  const auto rows = Seen(state, kViewTerminal, kViewNow + seconds(60));
  EXPECT_EQ(rows[0],
            "! 10.0.0.1:29400: nothing is listening there (Connection refused); trying again");
  EXPECT_THAT(rows[1], HasSubstr("age 5 min 22 s"));
  OnJobs(state, {.jobs = {RestartedJob()}}, kViewNow + seconds(70));
  EXPECT_THAT(Seen(state, kViewTerminal, kViewNow + seconds(70))[0], HasSubstr("live"));
}

TEST(TopViewTest, ThousandsOfRanksArePagesOfThem) {
  TopState state = Watching({RunningJob("huge", 1000, 8)}, "huge");
  auto rows = Seen(state);
  EXPECT_EQ(rows[4],
            "     0  rrrrrrrr rrrrrrrr rrrrrrrr rrrrrrrr rrrrrrrr rrrrrrrr rrrrrrrr rrrrrrrr");
  EXPECT_EQ(rows[5].substr(0, 9), "    64  r");
  // Six rows of 64 in two fifths of what there is.
  EXPECT_EQ(rows[9].substr(0, 9), "   320  r");
  EXPECT_THAT(rows[10], StartsWith("> rank 0 on node0"));
  Press(state, {{Kind::kCharacter, 'G'}});
  rows = Seen(state);
  EXPECT_THAT(rows[10], StartsWith("> rank 7999 on node999"));
  EXPECT_EQ(rows[4].substr(0, 9), "  7680  r");
  Press(state, {{Kind::kUp}});
  EXPECT_THAT(Seen(state)[10], StartsWith("> rank 7935 "));
  for (int i = 0; i < 200; ++i) Press(state, {{Kind::kUp}});
  EXPECT_THAT(Seen(state)[10], StartsWith("> rank 63 "));
}

TEST(TopViewTest, NodesAndLongTimelinesAreScrolled) {
  TopState state = Watching({RunningJob("wide", 40, 2)}, "wide");
  Press(state, {{Kind::kTab}});
  auto rows = Seen(state);
  // The grid has two rows.
  EXPECT_THAT(rows[8], HasSubstr("lines 1 to 13 of 40"));
  EXPECT_THAT(rows[9], StartsWith("  HOST    NODE  RANKS"));
  EXPECT_THAT(rows[10], StartsWith("  node0 "));
  for (int i = 0; i < 100; ++i) Press(state, {{Kind::kPageDown}});
  rows = Seen(state);
  EXPECT_THAT(rows[9], StartsWith("  HOST    NODE  RANKS")) << "headings stay";
  EXPECT_THAT(rows[22], StartsWith("  node39 "));
  Press(state, {{Kind::kPageUp}});
  EXPECT_THAT(Seen(state), Not(Contains(StartsWith("  node39 "))));
}

TEST(TopViewTest, JobThatHasEndedIsStillShown) {
  TopState state = Watching({RestartedJob()}, "big");
  OnJobs(state,
         {.ended = {{.run_id = "big",
                     .kind = rendezvous::VerdictKind::kWorkerFailed,
                     .sentence = "rank 5 on host node1 exited with code 1"}}},
         kViewNow + seconds(5));
  auto rows = Seen(state, kViewTerminal, kViewNow + seconds(60));
  EXPECT_THAT(rows[1], StartsWith("big  failed  round 1"));
  EXPECT_THAT(rows[1], HasSubstr("age 5 min 17 s")) << "its age at its end";
  EXPECT_EQ(rows[2], "rank 5 on host node1 exited with code 1");
  Press(state, {{Kind::kEscape}});
  EXPECT_THAT(Seen(state)[2], StartsWith("> big  failed"));
  // Another one takes its name.
  OnJobs(state, {.jobs = {RunningJob("big", 1, 1)}}, kViewNow);
  rows = Seen(state);
  EXPECT_THAT(rows[2], StartsWith("> big  running"));
  EXPECT_EQ(rows[3], "");
}

// What is seen last of a job that succeeds is that its workers run.
TEST(TopViewTest, RanksOfAJobThatHasSucceededAreDone) {
  TopState state = Watching({RestartedJob()}, "big");
  OnJobs(state, {.ended = {{.run_id = "big", .sentence = "job 'big' succeeded"}}}, kViewNow);
  EXPECT_EQ(Seen(state)[4], "node0      0  dddd");
  EXPECT_EQ(Seen(state)[5], "node1      4  dDdd");
}

TEST(TopViewTest, JobOfWhichNothingIsKnownAnyMoreIsSaidToBeGone) {
  TopState state = Watching({RestartedJob()}, "big");
  OnJobs(state, {}, kViewNow);
  EXPECT_EQ(Seen(state)[2],
            "the rendezvous no longer knows this job, and has not said how it ended");
}

TEST(TopViewTest, ListOfManyJobsIsShownPageByPage) {
  std::vector<JobSnapshot> jobs;
  for (int i = 0; i < 50; ++i) jobs.push_back(RunningJob(absl::StrCat("job", i + 10), 1, 1));
  TopState state = Watching(jobs);
  EXPECT_THAT(Seen(state)[2], StartsWith("> job10 "));
  EXPECT_THAT(Seen(state)[22], StartsWith("  job30 "));
  Press(state, {{Kind::kPageDown}});
  EXPECT_THAT(Seen(state)[2], StartsWith("> job31 "));
  Press(state, {{Kind::kEnd}});
  EXPECT_THAT(Seen(state), Contains(StartsWith("> job59 ")));
  Press(state, {{Kind::kEnter}});
  EXPECT_THAT(Seen(state)[1], StartsWith("job59  running"));
}

TEST(TopViewTest, HelpIsOneKeyAwayAndGoesWithAny) {
  TopState state = Watching({RestartedJob()});
  Press(state, {{Kind::kCharacter, '?'}});
  EXPECT_THAT(Seen(state), Contains(HasSubstr("choose a rank")));
  Press(state, {{Kind::kCharacter, 'q'}});
  EXPECT_THAT(Seen(state)[2], StartsWith("> big"));
  EXPECT_TRUE(PressKey(state, {Kind::kCharacter, 'q'}, kViewTerminal));
}

TEST(TopViewTest, EveryPlaceFitsEverySize) {
  JobSnapshot odd = RestartedJob();
  odd.nodes[0].node.slots = 300;
  odd.nodes[1].node.host = "größe-" + std::string(80, 'x');
  odd.nodes.push_back({.node = {.host = "spare"}, .state = NodeState::kSpare});
  for (const JobSnapshot& job : {RestartedJob(), RunningJob("huge", 300, 8), odd, JobSnapshot{}}) {
    for (const int columns : {1, 40, 80, 187}) {
      for (const int rows : {1, 12, 24, 56}) {
        const ScreenSize size{.columns = columns, .rows = rows};
        TopState state = Watching({job});
        Seen(state, size);
        Press(state, {{Kind::kEnter}}, size);
        Seen(state, size);
        Press(state, {{Kind::kCharacter, 'G'}, {Kind::kTab}, {Kind::kPageDown}, {Kind::kUp}}, size);
        Seen(state, size);
        Press(state, {{Kind::kTab}}, size);
        Seen(state, size);
        Press(state, {{Kind::kTab}}, size);
        OnLog(state, state.readings, LogText{.bytes = std::string(300, 'x') + "\n損失\n"});
        Seen(state, size);
        Press(state, {{Kind::kPageUp}, {Kind::kEnter}}, size);
        Seen(state, size);
        Press(state, {{Kind::kCharacter, 'o'}}, size);
        Seen(state, size);
        Press(state, {{Kind::kCharacter, '?'}}, size);
        Seen(state, size);
      }
    }
  }
}

TEST(TopViewTest, WithoutJobsItIsSaid) {
  EXPECT_EQ(Seen(BeginTop("a:1", ""))[0], "muster top  a:1" + std::string(55, ' ') + "connecting");
  EXPECT_EQ(Seen(Watching({}))[2], "  there are no jobs yet; the list updates itself");
}

}  // namespace
}  // namespace muster::launcher
