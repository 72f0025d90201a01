// Every value survives a round trip through the bytes of a real message; and whatever a foreign
// client puts into such bytes comes out harmless.
#include "rendezvous/wire/wire.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMinInt64 = std::numeric_limits<std::int64_t>::min();

// The message as received by the other end.
template <typename Message>
Message Sent(const Message& message) {
  Message received;
  EXPECT_TRUE(received.ParseFromString(message.SerializeAsString()))
      << "the other end cannot read it";
  return received;
}

Directive ThereAndBack(const Directive& directive) {
  v1::Directive wire;
  ToWire(directive, &wire);
  return FromWire(Sent(wire));
}

Event ThereAndBack(const Event& event) {
  v1::AgentEvent wire;
  ToWire(event, &wire);
  return FromWire(Sent(wire));
}

// From an event written by another program.
JoinRequest FromWire(const v1::Join& join) {
  v1::AgentEvent wire;
  *wire.mutable_join() = join;
  return std::get<JoinRequest>(muster::rendezvous::FromWire(wire));
}

WorkersOutcome FromWire(const v1::WorkersExited& exited) {
  v1::AgentEvent wire;
  *wire.mutable_workers_exited() = exited;
  return std::get<WorkersExited>(muster::rendezvous::FromWire(wire)).outcome;
}

JoinRequest ThereAndBack(const JoinRequest& request) {
  return std::get<JoinRequest>(ThereAndBack(Event(request)));
}

WorkersOutcome ThereAndBack(const WorkersOutcome& outcome) {
  const RoundId round{.incarnation = 8, .number = 7};
  const auto exited = std::get<WorkersExited>(ThereAndBack(Event(WorkersExited{round, outcome})));
  EXPECT_EQ(exited.round, round);
  return exited.outcome;
}

// The directive, which must be of this kind.
template <typename Kind>
Kind As(const Directive& directive) {
  const Kind* kind = std::get_if<Kind>(&directive);
  EXPECT_NE(kind, nullptr) << "another kind came back";
  return kind == nullptr ? Kind{} : *kind;
}

WorkerFailure SomeFailure() {
  return {.rank = 3,
          .local_rank = 1,
          .node_id = "b-1",
          .host = "b",
          .pid = 4'000'000'000,
          .exit_code = 3,
          .signal = 11,
          .what = "was killed by SIGSEGV",
          .stderr_tail = "one\n\ttwo\n",
          .log_path = "/logs/3/stderr.log",
          .error_file = "/logs/3/error.json",
          .error_message = "ValueError: no such layer",
          .error_traceback = "Traceback:\n  line 3\n",
          .error_time = 1'700'000'000,
          .operations = "rank 3 waits in all-reduce 812 (h.2.c_proj) for 30 s"};
}

JoinRequest SomeRequest() {
  return {.run_id = "job",
          .settings = {.min_nodes = 2,
                       .max_nodes = 4,
                       .last_call = milliseconds(1500),
                       .join_timeout = milliseconds(90'000),
                       .lease = milliseconds(2500),
                       .max_restarts = 3,
                       .exact_ranks = true,
                       .store_tunnel = true,
                       .straggler_threshold = 0.25},
          .node = {.node_id = "node-1",
                   .host = "a",
                   .address = "10.0.0.1",
                   .addresses = {"10.1.0.1", "fd00::1"},
                   .master_port = 65535,
                   .serves_store = true,
                   .slots = 8,
                   .rank_hint = 0,
                   .role = "trainer",
                   .topology = {"zone-a", "rack-7"},
                   .devices = {"0", "1"}}};
}

TEST(WireTest, JoinComesBackAsItWas) {
  const JoinRequest sent = SomeRequest();
  const JoinRequest received = ThereAndBack(sent);
  EXPECT_EQ(received.run_id, sent.run_id);
  EXPECT_EQ(received.settings, sent.settings);
  EXPECT_EQ(received.node, sent.node);
}

TEST(WireTest, NodeWithoutARankHintIsNotTheOneThatWantsRankZero) {
  JoinRequest request = SomeRequest();
  request.node.rank_hint.reset();
  EXPECT_EQ(ThereAndBack(request).node.rank_hint, std::nullopt);
  request.node.rank_hint = 0;
  EXPECT_EQ(ThereAndBack(request).node.rank_hint, 0);
}

TEST(WireTest, OutcomesComeBackAsTheyWere) {
  const WorkersOutcome success{.succeeded = true};
  EXPECT_EQ(ThereAndBack(success), success);
  const WorkersOutcome failure{.succeeded = false, .failure = SomeFailure()};
  EXPECT_EQ(ThereAndBack(failure), failure);
}

TEST(WireTest, FailureOfWhichNothingIsKnownIsStillAFailure) {
  EXPECT_FALSE(ThereAndBack(WorkersOutcome{.succeeded = false}).succeeded);
}

TEST(WireTest, WelcomeComesBackAsItWas) {
  const std::string secret("any\0bytes", 9);
  const auto welcome =
      As<Welcome>(ThereAndBack(Welcome{milliseconds(500), milliseconds(2500), 7, true, secret, 3}));
  EXPECT_EQ(welcome.keep_alive, milliseconds(500));
  EXPECT_EQ(welcome.lease, milliseconds(2500));
  EXPECT_EQ(welcome.incarnation, 7u);
  EXPECT_TRUE(welcome.durable);
  EXPECT_EQ(welcome.knock_secret, secret);
  EXPECT_EQ(welcome.version, 3);
}

TEST(WireTest, VersionsComeBackAsTheyWere) {
  JoinRequest request = SomeRequest();
  request.speaks = {3, 5};
  EXPECT_EQ(ThereAndBack(request).speaks, request.speaks);
}

// From builds before version negotiation.
TEST(WireTest, WhoTellsNoVersionSpeaksTheFirst) {
  v1::AgentEvent join, resume;
  join.mutable_join();
  resume.mutable_resume();
  EXPECT_EQ(std::get<JoinRequest>(rendezvous::FromWire(join)).speaks, kUntold);
  EXPECT_EQ(std::get<Resume>(rendezvous::FromWire(resume)).speaks, kUntold);
  v1::Directive welcome;
  welcome.mutable_welcome();
  EXPECT_EQ(std::get<Welcome>(rendezvous::FromWire(welcome)).version, 1);
}

TEST(WireTest, NoticeComesBackAsItWas) {
  EXPECT_EQ(As<Notice>(ThereAndBack(Notice{"node b was refused"})).sentence, "node b was refused");
  const auto slow = As<Notice>(ThereAndBack(Notice{"slow", Notice::Kind::kStraggler, 3}));
  EXPECT_EQ(slow.kind, Notice::Kind::kStraggler);
  EXPECT_EQ(slow.rank, 3);
  const auto over = As<Notice>(ThereAndBack(Notice{"fast", Notice::Kind::kStragglerOver}));
  EXPECT_EQ(over.kind, Notice::Kind::kStragglerOver);
  EXPECT_EQ(over.rank, std::nullopt);
}

TEST(WireTest, WaitingComesBackAsItWas) {
  for (const bool spare : {true, false}) {
    const auto waiting = As<Waiting>(ThereAndBack(Waiting{2, "1 of 2 nodes are here", spare}));
    EXPECT_EQ(waiting.round, 2);
    EXPECT_EQ(waiting.sentence, "1 of 2 nodes are here");
    EXPECT_EQ(waiting.spare, spare);
  }
}

TEST(WireTest, AssignmentComesBackAsItWas) {
  const Assignment assignment{.run_id = "job",
                              .round = 1'000'000'000'000,
                              .group_rank = 1,
                              .group_world_size = 3,
                              .base_rank = 8,
                              .world_size = 24,
                              .role_base_rank = 4,
                              .role_world_size = 12,
                              .master_addr = "10.0.0.1",
                              .master_port = 40'001,
                              .agent_store = true,
                              .store_tunnel = true,
                              .restart_count = 2,
                              .max_restarts = 5,
                              .rank_reason = "keeps rank 1 from round 3"};
  EXPECT_EQ(As<Assignment>(ThereAndBack(assignment)), assignment);
}

TEST(WireTest, StopAndFencedComeBackAsTheyWere) {
  const auto stop = As<Stop>(ThereAndBack(Stop{4, "node b was lost"}));
  EXPECT_EQ(stop.round, 4);
  EXPECT_EQ(stop.reason, "node b was lost");
  const auto fenced = As<Fenced>(ThereAndBack(Fenced{5, "fenced: round 5 is over"}));
  EXPECT_EQ(fenced.round, 5);
  EXPECT_EQ(fenced.sentence, "fenced: round 5 is over");
}

TEST(WireTest, VerdictOfEveryKindComesBackAsItWas) {
  for (const VerdictKind kind : {VerdictKind::kSucceeded, VerdictKind::kWorkerFailed,
                                 VerdictKind::kJoinTimeout, VerdictKind::kClosed}) {
    Verdict verdict{.kind = kind, .sentence = "the job is over", .rounds = 2, .restarts = 1};
    EXPECT_EQ(As<Verdict>(ThereAndBack(verdict)), verdict);
    verdict.root_cause = SomeFailure();
    EXPECT_EQ(As<Verdict>(ThereAndBack(verdict)), verdict);
  }
}

TEST(WireTest, WhatIsCountedComesWithBeatsAndFailures) {
  const KeepAlive beat{.number = 7, .heard = 6, .log_bytes_lost = 1234};
  EXPECT_EQ(std::get<KeepAlive>(ThereAndBack(Event(beat))), beat);
  WorkersExited exited{{1, 2}, {.failure = WorkerFailure{}}, std::chrono::milliseconds(45)};
  EXPECT_EQ(std::get<WorkersExited>(ThereAndBack(Event(exited))).failed_ago, exited.failed_ago);
  exited.failed_ago = -std::chrono::seconds(1);
  EXPECT_EQ(std::get<WorkersExited>(ThereAndBack(Event(exited))).failed_ago, Duration::zero());
}

TEST(WireTest, QuestionWhetherItMayLeaveAndItsAnswerComeBackAsTheyWere) {
  const AskToLeave asked{{7, 3}, "Slurm drains it (bad fan)"};
  EXPECT_EQ(std::get<AskToLeave>(ThereAndBack(Event(asked))), asked);
  EXPECT_TRUE(As<LeaveAnswer>(ThereAndBack(LeaveAnswer{.may_leave = true})).may_leave);
  const auto stay = As<LeaveAnswer>(ThereAndBack(LeaveAnswer{.why_not = "the job needs it"}));
  EXPECT_FALSE(stay.may_leave);
  EXPECT_EQ(stay.why_not, "the job needs it");
}

TEST(WireTest, RefusedComesBackAsItWas) {
  EXPECT_EQ(As<Refused>(ThereAndBack(Refused{"run id \"\" is empty"})).sentence,
            "run id \"\" is empty");
}

TEST(WireTest, SnapshotIsDescribedFieldByField) {
  const JobSnapshot job{.run_id = "job",
                        .state = JobState::kRunning,
                        .round = 3,
                        .sentence = "2 of 2 nodes are here",
                        .settings = SomeRequest().settings,
                        .restart_count = 1,
                        .nodes = {{.node = SomeRequest().node,
                                   .state = NodeState::kRunning,
                                   .group_rank = 0,
                                   .rank_reason = "asked for rank 0"},
                                  {.node = {.host = "spare"}, .state = NodeState::kSpare}}};
  v1::JobDescription written;
  ToWire(job, &written);
  const v1::JobDescription wire = Sent(written);
  EXPECT_EQ(wire.run_id(), "job");
  EXPECT_EQ(wire.state(), v1::JobDescription::RUNNING);
  EXPECT_EQ(wire.round(), 3);
  EXPECT_EQ(wire.sentence(), "2 of 2 nodes are here");
  EXPECT_EQ(wire.settings().min_nodes(), 2);
  EXPECT_EQ(wire.settings().max_nodes(), 4);
  EXPECT_EQ(wire.settings().last_call_ms(), 1500);
  EXPECT_EQ(wire.settings().join_timeout_ms(), 90'000);
  EXPECT_EQ(wire.settings().lease_ms(), 2500);
  EXPECT_EQ(wire.settings().max_restarts(), 3);
  EXPECT_EQ(wire.restart_count(), 1);
  ASSERT_EQ(wire.nodes_size(), 2);
  EXPECT_EQ(wire.nodes(0).node().node_id(), "node-1");
  EXPECT_EQ(wire.nodes(0).state(), v1::NodeDescription::RUNNING);
  EXPECT_EQ(wire.nodes(0).group_rank(), 0);
  EXPECT_EQ(wire.nodes(0).rank_reason(), "asked for rank 0");
  EXPECT_EQ(wire.nodes(1).node().host(), "spare");
  EXPECT_EQ(wire.nodes(1).state(), v1::NodeDescription::SPARE);
  EXPECT_EQ(wire.nodes(1).group_rank(), -1);
}

TEST(WireTest, SnapshotComesBackAsItWas) {
  for (const JobState state : {JobState::kGathering, JobState::kRunning, JobState::kEnded}) {
    const JobSnapshot job{.run_id = "job",
                          .state = state,
                          .round = 3,
                          .sentence = "2 of 2 nodes are here",
                          .settings = SomeRequest().settings,
                          .restart_count = 1,
                          .age = std::chrono::milliseconds(1234),
                          .productive = std::chrono::milliseconds(1200),
                          .ended_ago = std::chrono::milliseconds(7),
                          .store_keys = 12,
                          .store_bytes = 3456,
                          .log_bytes_lost = 78,
                          .rounds = {{.number = 2,
                                      .opened_ago = std::chrono::milliseconds(1234),
                                      .gathered = std::chrono::milliseconds(5),
                                      .ran = std::chrono::milliseconds(6),
                                      .nodes = 2,
                                      .workers = 8,
                                      .failed_rank = 0,
                                      .end = RoundEnd::kNodeOutOfTouch,
                                      .reason = "node b is out of touch"},
                                     {.number = 3}},
                          .outcome = VerdictKind::kWorkerFailed,
                          .failure = WorkerFailure{.rank = 3, .host = "a", .what = "was lost"},
                          .nodes = {{.node = SomeRequest().node,
                                     .state = NodeState::kStopping,
                                     .group_rank = 0,
                                     .rank_reason = "asked for rank 0"},
                                    {.node = {.host = "spare"}, .state = NodeState::kSpare}}};
    v1::JobDescription wire;
    ToWire(job, &wire);
    const JobSnapshot back = rendezvous::FromWire(Sent(wire));
    EXPECT_EQ(back.age, job.age);
    EXPECT_EQ(back.rounds, job.rounds);
    EXPECT_EQ(back.ended_ago, job.ended_ago);
    EXPECT_EQ(back.outcome, job.outcome);
    EXPECT_EQ(back.failure, job.failure);
    EXPECT_EQ(back.productive, job.productive);
    EXPECT_EQ(back.store_keys, 12u);
    EXPECT_EQ(back.store_bytes, 3456u);
    EXPECT_EQ(back.log_bytes_lost, 78u);
    EXPECT_EQ(back.run_id, job.run_id);
    EXPECT_EQ(back.state, job.state);
    EXPECT_EQ(back.round, job.round);
    EXPECT_EQ(back.sentence, job.sentence);
    EXPECT_EQ(back.settings, job.settings);
    EXPECT_EQ(back.restart_count, job.restart_count);
    ASSERT_EQ(back.nodes.size(), 2u);
    EXPECT_EQ(back.nodes[0].node, job.nodes[0].node);
    EXPECT_EQ(back.nodes[0].state, NodeState::kStopping);
    EXPECT_EQ(back.nodes[0].group_rank, 0);
    EXPECT_EQ(back.nodes[0].rank_reason, "asked for rank 0");
    EXPECT_EQ(back.nodes[1].state, NodeState::kSpare);
    EXPECT_EQ(back.nodes[1].group_rank, -1);
  }
}

TEST(WireTest, StatesOfJobsAndNodesHaveTheirNames) {
  const auto job_state = [](JobState state) {
    v1::JobDescription wire;
    ToWire(JobSnapshot{.state = state}, &wire);
    return v1::JobDescription::State_Name(wire.state());
  };
  EXPECT_EQ(job_state(JobState::kGathering), "GATHERING");
  EXPECT_EQ(job_state(JobState::kRunning), "RUNNING");
  EXPECT_EQ(job_state(JobState::kEnded), "ENDED");
  const auto node_state = [](NodeState state) {
    v1::JobDescription wire;
    ToWire(JobSnapshot{.nodes = {{.state = state}}}, &wire);
    return v1::NodeDescription::State_Name(wire.nodes(0).state());
  };
  EXPECT_EQ(node_state(NodeState::kJoined), "JOINED");
  EXPECT_EQ(node_state(NodeState::kStarting), "STARTING");
  EXPECT_EQ(node_state(NodeState::kRunning), "RUNNING");
  EXPECT_EQ(node_state(NodeState::kSucceeded), "SUCCEEDED");
  EXPECT_EQ(node_state(NodeState::kStopping), "STOPPING");
  EXPECT_EQ(node_state(NodeState::kSpare), "SPARE");
}

// Jobs with such names were listed but could not be looked up.
TEST(WireTest, NamesThatAreLookedUpStayAsTheyAre) {
  for (const char* const name : {"my job", "a\u202eb", "x\u200dy", "größe"}) {
    v1::JobDescription wire;
    ToWire(JobSnapshot{.run_id = name, .nodes = {{.node = {.role = name}}}}, &wire);
    const JobSnapshot back = muster::rendezvous::FromWire(wire);
    EXPECT_EQ(back.run_id, name);
    EXPECT_EQ(back.nodes.front().node.role, name);
    v1::JobEnd end;
    ToWire(JobEnd{.run_id = name}, &end);
    EXPECT_EQ(muster::rendezvous::FromWire(end).run_id, name);
  }
  v1::JobDescription wire;
  wire.set_run_id("a\x1b[2J");
  EXPECT_EQ(muster::rendezvous::FromWire(wire).run_id, "a?[2J") << "which no name may be";
}

// ------------------------------------------------------------------------- what a stranger sends

TEST(WireTest, ControlCharactersInWhatPeopleSeeAreReplaced) {
  v1::Join join;
  join.mutable_node()->set_host("\x1b[2Jevil\nhost");
  join.mutable_node()->set_address("10.0.0.1\r");
  join.mutable_node()->set_role("a\nb");
  join.mutable_node()->add_topology("zone\x07");
  join.mutable_node()->add_devices("0\x1b");
  const NodeInfo node = FromWire(join).node;
  EXPECT_EQ(node.host, "?[2Jevil host");
  EXPECT_EQ(node.address, "10.0.0.1?");
  EXPECT_EQ(node.role, "a b");
  EXPECT_EQ(node.topology, std::vector<std::string>{"zone?"});
  EXPECT_EQ(node.devices, std::vector<std::string>{"0?"});
}

TEST(WireTest, ControlCharactersInAFailureAreReplaced) {
  v1::WorkersExited exited;
  v1::WorkerFailure& failure = *exited.mutable_failure();
  failure.set_node_id("b\x1b");
  failure.set_host("b\x1b");
  failure.set_what("exited\nwith code 3");
  failure.set_stderr_tail("line\n\x1b[31mred\xff\n");
  failure.set_log_path("/logs/\x1b");
  failure.set_error_file("/error\x7f");
  const WorkerFailure received = *FromWire(exited).failure;
  EXPECT_EQ(received.node_id, "b?");
  EXPECT_EQ(received.host, "b?");
  EXPECT_EQ(received.what, "exited with code 3");
  EXPECT_EQ(received.stderr_tail, "line\n?[31mred?\n") << "lines are kept there";
  EXPECT_EQ(received.log_path, "/logs/?");
  EXPECT_EQ(received.error_file, "/error?");
}

TEST(WireTest, ControlCharactersInSentencesOfTheDaemonAreReplaced) {
  v1::Directive wire;
  wire.mutable_stop()->set_reason("\x1b]0;title\x07");
  EXPECT_EQ(As<Stop>(rendezvous::FromWire(wire)).reason, "?]0;title?");
  wire.mutable_refused()->set_sentence("no\r\n");
  EXPECT_EQ(As<Refused>(rendezvous::FromWire(wire)).sentence, "no? ");
  wire.mutable_verdict()->set_sentence("over\x1b");
  EXPECT_EQ(As<Verdict>(rendezvous::FromWire(wire)).sentence, "over?");
}

TEST(WireTest, LongStringsAreCutToTheirLimits) {
  const std::string long_text(100'000, 'x');
  v1::Join join;
  join.mutable_node()->set_host(long_text);
  for (int i = 0; i < 1000; ++i) {
    join.mutable_node()->add_topology("label");
    join.mutable_node()->add_devices("device");
  }
  const NodeInfo node = FromWire(join).node;
  EXPECT_EQ(node.host.size(), 4096u);
  EXPECT_EQ(node.topology.size(), 64u);
  EXPECT_EQ(node.devices.size(), 64u);
}

TEST(WireTest, LongStderrKeepsItsEnd) {
  v1::WorkersExited exited;
  exited.mutable_failure()->set_stderr_tail(std::string(100'000, 'x') + "the error");
  const std::string tail = FromWire(exited).failure->stderr_tail;
  EXPECT_EQ(tail.size(), kMaxStderrTail);
  EXPECT_EQ(tail.substr(tail.size() - 9), "the error");
}

TEST(WireTest, NumbersThatAreNoPortAreNone) {
  for (const std::uint32_t port : {0u, 65'536u, 70'000u, 65'536u + 29'500u, 4'294'967'295u}) {
    v1::Join join;
    join.mutable_node()->set_master_port(port);
    EXPECT_EQ(FromWire(join).node.master_port, 0) << port;
    v1::Directive directive;
    directive.mutable_start()->set_master_port(port);
    EXPECT_EQ(As<Assignment>(rendezvous::FromWire(directive)).master_port, 0) << port;
  }
}

TEST(WireTest, HugeTimesCanStillBeAddedToNow) {
  const TimePoint now = std::chrono::steady_clock::now();
  v1::Join join;
  join.mutable_settings()->set_join_timeout_ms(kMaxInt64);
  join.mutable_settings()->set_lease_ms(kMaxInt64);
  join.mutable_settings()->set_last_call_ms(kMinInt64);
  const JobSettings settings = FromWire(join).settings;
  EXPECT_GT(now + settings.join_timeout, now + std::chrono::hours(24 * 365));
  EXPECT_GT(now + settings.lease, now + std::chrono::hours(24 * 365));
  EXPECT_LT(settings.last_call, Duration::zero()) << "for the Coordinator to refuse";
}

TEST(WireTest, AgentOnTheNetworkCannotBeWithoutALease) {
  for (const std::int64_t ms : {std::int64_t{0}, std::int64_t{-5}, kMinInt64}) {
    v1::Join join;
    join.mutable_settings()->set_lease_ms(ms);
    EXPECT_GT(FromWire(join).settings.lease, Duration::zero()) << ms;
  }
}

TEST(WireTest, NumbersOfNodesAndWorkersAreLeftForTheCoordinatorToJudge) {
  v1::Join join;
  join.mutable_settings()->set_min_nodes(-1);
  join.mutable_settings()->set_max_restarts(-7);
  join.mutable_node()->set_slots(std::numeric_limits<std::int32_t>::min());
  join.mutable_node()->set_rank_hint(-2);
  const JoinRequest request = FromWire(join);
  EXPECT_EQ(request.settings.min_nodes, -1);
  EXPECT_EQ(request.settings.max_restarts, -7);
  EXPECT_EQ(request.node.slots, std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(request.node.rank_hint, -2);
}

TEST(WireTest, VerdictOfAKindFromTheFutureIsNoSuccess) {
  for (const int kind : {0, 5, 99, -1}) {
    v1::Directive wire;
    wire.mutable_verdict()->set_kind(static_cast<v1::Verdict::Kind>(kind));
    EXPECT_EQ(As<Verdict>(rendezvous::FromWire(Sent(wire))).kind, VerdictKind::kClosed) << kind;
  }
}

TEST(WireTest, DirectiveOfAKindFromTheFutureSaysNothing) {
  v1::Directive wire;
  // Field 15, a message of no bytes.
  ASSERT_TRUE(wire.ParseFromString(std::string("\x7a\x00", 2)));
  EXPECT_EQ(As<Waiting>(rendezvous::FromWire(wire)).sentence, "");
}

TEST(WireTest, EmptyMessagesAreRead) {
  EXPECT_EQ(FromWire(v1::Join{}).node.slots, 0);
  EXPECT_TRUE(FromWire(v1::WorkersExited{}).succeeded);
  EXPECT_EQ(As<Waiting>(rendezvous::FromWire(v1::Directive{})).sentence, "");
}

// A worker's path with invalid UTF-8 ended the streams of all agents of the job: protobuf rejects a
// message with such a string.
TEST(WireTest, TextThatIsNoUtf8DoesNotSpoilTheMessage) {
  const std::string bad = "caf\xe9";
  WorkerFailure failure{.node_id = bad,
                        .host = bad,
                        .what = bad,
                        .stderr_tail = bad,
                        .log_path = bad,
                        .error_file = bad};
  EXPECT_EQ(ThereAndBack(WorkersOutcome{.failure = failure}).failure->what, "caf?");
  EXPECT_EQ(ThereAndBack(WorkersOutcome{.failure = failure}).failure->stderr_tail, "caf?");
  JoinRequest request = SomeRequest();
  request.node.host = request.node.address = request.node.role = bad;
  request.node.topology = request.node.devices = {bad};
  EXPECT_EQ(ThereAndBack(request).node.host, "caf?");
  EXPECT_EQ(As<Stop>(ThereAndBack(Stop{0, bad})).reason, "caf?");
  EXPECT_EQ(As<Waiting>(ThereAndBack(Waiting{0, bad, false})).sentence, "caf?");
  EXPECT_EQ(As<Fenced>(ThereAndBack(Fenced{0, bad})).sentence, "caf?");
  EXPECT_EQ(As<Refused>(ThereAndBack(Refused{bad})).sentence, "caf?");
  EXPECT_EQ(
      As<Assignment>(ThereAndBack(Assignment{.master_addr = bad, .rank_reason = bad})).master_addr,
      "caf?");
  EXPECT_EQ(
      As<Verdict>(ThereAndBack(Verdict{.sentence = bad, .root_cause = failure})).root_cause->what,
      "caf?");
  v1::JobDescription job;
  ToWire(JobSnapshot{.sentence = bad, .nodes = {{.node = request.node, .rank_reason = bad}}}, &job);
  EXPECT_EQ(Sent(job).nodes(0).rank_reason(), "caf?");
}

KeepAlive SomeKeepAlive() {
  return {
      .number = 7,
      .heard = 6,
      .progress = {.round = {.incarnation = 8, .number = 7},
                   .ranks = {{.local_rank = 0,
                              .step = 1200,
                              .ago = milliseconds(250),
                              .loss = -std::numeric_limits<double>::infinity(),
                              .samples_per_second = 512.5,
                              .step_seconds = 0.125,
                              .phases = {{"data", 0.012}, {"wait", 0, true}},
                              .timed_steps = 1199},
                             {.local_rank = 3, .phases = {{"forward", 0.1}, {"wait", 0.2, true}}},
                             {.local_rank = 4}}}};
}

TEST(WireTest, WhatRanksHaveToldComesBackAsItWas) {
  const KeepAlive sent = SomeKeepAlive();
  const KeepAlive received = std::get<KeepAlive>(ThereAndBack(Event(sent)));
  EXPECT_EQ(received.number, sent.number);
  EXPECT_EQ(received.heard, sent.heard);
  EXPECT_EQ(received.progress.round, sent.progress.round);
  ASSERT_EQ(received.progress.ranks.size(), 3u);
  EXPECT_EQ(received.progress.ranks[0], sent.progress.ranks[0]);
  EXPECT_EQ(received.progress.ranks[2], sent.progress.ranks[2]);
  // The phases of all ranks are in one order.
  EXPECT_EQ(received.progress.ranks[1].phases,
            (std::vector<PhaseTime>{{"wait", 0.2, true}, {"forward", 0.1}}));
  EXPECT_EQ(std::get<KeepAlive>(ThereAndBack(Event(KeepAlive{.number = 7}))),
            KeepAlive{.number = 7});
}

TEST(WireTest, ProgressOfStrangersIsHarmless) {
  v1::AgentEvent wire;
  v1::Progress* const progress = wire.mutable_keep_alive()->mutable_progress();
  for (int i = 0; i < 1000; ++i) progress->add_phases()->set_name("\x1b[2J" + std::string(99, 'x'));
  v1::RankProgress* const rank = progress->add_ranks();
  rank->set_local_rank(-1);
  rank->set_ago_ms(kMinInt64);
  rank->set_samples_per_second(-1);
  rank->set_step_seconds(std::numeric_limits<double>::quiet_NaN());
  for (int i = 0; i < 2000; ++i) rank->add_phase_seconds(i % 2 == 0 ? i : -HUGE_VAL);
  const auto read = std::get<KeepAlive>(rendezvous::FromWire(Sent(wire)));
  ASSERT_EQ(read.progress.ranks.size(), 1u);
  const RankProgress& told = read.progress.ranks[0];
  EXPECT_EQ(told.ago, Duration::zero());
  EXPECT_EQ(told.samples_per_second, std::nullopt);
  EXPECT_EQ(told.step_seconds, std::nullopt);
  EXPECT_EQ(told.phases.size(), 8u);
  EXPECT_EQ(told.phases[0].name, "?[2J" + std::string(11, 'x'));
}

TEST(WireTest, WhatIsWrongWithRanksComesBackAsItWas) {
  KeepAlive beat{.number = 7, .progress = {.round = {.incarnation = 8, .number = 7}}};
  EXPECT_EQ(std::get<KeepAlive>(ThereAndBack(Event(beat))).progress.alerts, std::nullopt);
  beat.progress.alerts.emplace();
  EXPECT_EQ(std::get<KeepAlive>(ThereAndBack(Event(beat))), beat) << "nothing is, any more";
  for (const RankAlertKind kind : {RankAlertKind::kOther, RankAlertKind::kStopped,
                                   RankAlertKind::kSilent, RankAlertKind::kOutputLost}) {
    beat.progress.alerts->push_back(
        {.local_rank = 3, .kind = kind, .what = "was seen", .ago = milliseconds(250)});
  }
  EXPECT_EQ(std::get<KeepAlive>(ThereAndBack(Event(beat))), beat);

  v1::AgentEvent wire;
  v1::RankAlert* const strange =
      wire.mutable_keep_alive()->mutable_progress()->mutable_alerts()->add_alerts();
  strange->set_kind(static_cast<v1::RankAlert::Kind>(77));
  strange->set_what("\x1b[2J\n" + std::string(9999, 'x'));
  strange->set_ago_ms(kMinInt64);
  const auto read = std::get<KeepAlive>(rendezvous::FromWire(Sent(wire))).progress.alerts.value();
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].kind, RankAlertKind::kOther);
  EXPECT_EQ(read[0].what, "?[2J " + std::string(195, 'x'));
  EXPECT_EQ(read[0].ago, Duration::zero());
}

TEST(WireTest, RanksOfAJobComeBackAsTheyWere) {
  const RankProgress told = SomeKeepAlive().progress.ranks[0];
  const JobSnapshot job{
      .run_id = "j",
      .nodes = {{.node = SomeRequest().node,
                 .heard_ago = milliseconds(700),
                 .state_ago = milliseconds(8000),
                 .ranks = {{.rank = 9,
                            .told = told,
                            .straggling = Straggling{0.5, "data", milliseconds(9)}},
                           {.rank = 10, .told = told}},
                 .alerts = {{.rank = 9,
                             .told = {.local_rank = 0,
                                      .kind = RankAlertKind::kStopped,
                                      .what = "was stopped by SIGSTOP",
                                      .ago = milliseconds(40)}}}},
                {.node = SomeRequest().node, .alerts = {{.rank = 12}}}}};
  v1::JobDescription wire;
  ToWire(job, &wire);
  const JobSnapshot read = rendezvous::FromWire(Sent(wire));
  ASSERT_EQ(read.nodes.size(), 2u);
  EXPECT_EQ(read.nodes[0].heard_ago, milliseconds(700));
  EXPECT_EQ(read.nodes[0].state_ago, milliseconds(8000));
  ASSERT_EQ(read.nodes[0].ranks.size(), 2u);
  EXPECT_EQ(read.nodes[0].ranks[0].rank, 9);
  EXPECT_EQ(read.nodes[0].ranks[0].told, told);
  EXPECT_EQ(read.nodes[0].ranks[0].straggling, (Straggling{0.5, "data", milliseconds(9)}));
  EXPECT_EQ(read.nodes[0].ranks[1].straggling, std::nullopt);
  EXPECT_EQ(read.nodes[1].heard_ago, std::nullopt);
  EXPECT_EQ(read.nodes[1].state_ago, std::nullopt);
  EXPECT_TRUE(read.nodes[1].ranks.empty());
  ASSERT_EQ(read.nodes[0].alerts.size(), 1u);
  EXPECT_EQ(read.nodes[0].alerts[0].rank, 9);
  EXPECT_EQ(read.nodes[0].alerts[0].told, job.nodes[0].alerts[0].told);
  ASSERT_EQ(read.nodes[1].alerts.size(), 1u) << "also of ranks that tell nothing";
  EXPECT_EQ(read.nodes[1].alerts[0].rank, 12);
}

TEST(WireTest, TextIsNotCutInTheMiddleOfACharacter) {
  JoinRequest request = SomeRequest();
  request.node.host = "x";
  for (int i = 0; i < 3000; ++i) request.node.host += "é";
  EXPECT_EQ(ThereAndBack(request).node.host.size(), 4095u);
}

}  // namespace
}  // namespace muster::rendezvous
