// The values that rendezvous decisions take and return. Plain data: copied freely, read-only once
// made, no behaviour beyond printing. `proto/rendezvous.proto` is their wire format.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/lifetime.h"

namespace muster::rendezvous {

// Versions of the protocol between agents and daemons (proto/rendezvous.proto).

// The versions that one end can speak. Both use the newest they have in common; if there is none,
// they disconnect with a sentence that says which one to upgrade.
//
//   1  before version negotiation: a peer that sends no version speaks this one
//   2  Join and Resume carry the agent's versions, Welcome the one to use
//   3  AskToLeave is answered
//
// A field that may be ignored needs no version. One that must be understood gets the next version,
// and is used only where that is spoken. A release drops a version only when its predecessor did
// not need it, so that neighbouring releases always understand each other.
struct SpokenVersions {
  int oldest = 1;
  int newest = 3;

  bool operator==(const SpokenVersions&) const = default;
};

// Of a peer that sends no versions.
inline constexpr SpokenVersions kUntold{1, 1};

// From this version on the daemon decides which nodes a job can do without (LeaveAnswer).
inline constexpr int kLeaveAnswers = 3;

// Time by the daemon's own monotonic clock. The core receives `now` and never reads a clock; it is
// never compared with another node's clock.
using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

// One connection of one agent, numbered by the Coordinator's owner. Never reused within a process:
// an agent that reconnects gets a new one.
using AgentId = std::uint64_t;

// Rounds of a job are numbered from 0 and never reused.
using RoundNumber = std::int64_t;
inline constexpr RoundNumber kNoRound = -1;

// One life of one job, from the first Join to the last goodbye. Another job of the same name has a
// different one, even if the daemon was restarted in between.
using Incarnation = std::uint64_t;

// The fencing token: which round of which life of the job something is about. Anything that does
// not name the current one is ignored.
struct RoundId {
  Incarnation incarnation = 0;
  RoundNumber number = kNoRound;

  bool operator==(const RoundId&) const = default;
};

// How an agent that comes back over another connection proves its identity: an unguessable random
// name of its own choice. Empty: it cannot come back.
using SessionToken = std::string;

// What one node contributes to a job. The agent builds it before each join.
struct NodeInfo {
  // Unique for each agent process; [A-Za-z0-9][A-Za-z0-9._-]{0,63}. Ranks stay with it across
  // rounds.
  std::string node_id;
  // The name people know the node by. Only shown, never resolved.
  std::string host;
  // Where the workers of other nodes reach this one: an IP address, or a name given by the user.
  std::string address;
  // Other numeric addresses its workers' connections may come from.
  std::vector<std::string> addresses;
  // A TCP port that this agent holds for the workers' store, in case it gets group rank 0.
  std::uint16_t master_port = 0;
  // The agent itself serves that store; otherwise the worker with rank 0 does.
  bool serves_store = false;
  // Number of workers this node runs, at least 1.
  int slots = 1;
  // --node-rank, SLURM_NODEID or JOB_COMPLETION_INDEX: the place in rank order the user wants.
  std::optional<int> rank_hint;
  // --role of this node's workers.
  std::string role = "default";
  // Labels from the outermost to the innermost ("zone-a", "rack-7"): nodes that share a prefix get
  // neighbouring ranks.
  std::vector<std::string> topology;
  // What the workers may use, as the user specified it (entries of CUDA_VISIBLE_DEVICES). Only
  // shown.
  std::vector<std::string> devices;
  // The agent can deliver its workers' output (LogWanted); agents of older releases cannot.
  bool delivers_logs = false;

  bool operator==(const NodeInfo&) const = default;
};

// Shared and immutable: it makes the record of a job of ten thousand nodes cheap to take.
using SharedNode = base::SharedValue<NodeInfo>;

// When a newcomer gets a free place.
enum class ScaleUp {
  kNow,          // at once: the round ends to let it in
  kNextRestart,  // when the round ends for another reason
};

// How a job is restarted after workers fail, apart from the budget (JobSettings::max_restarts).
struct RestartPolicy {
  // Restarts longer ago than this do not count against the budget; zero: all count.
  Duration window{};
  // The first restart in a row waits for `delay`, each further one twice as long as the one before,
  // up to `longest_delay`. A restart is the first in a row when none was in the last ten times
  // `longest_delay`.
  Duration delay{};
  Duration longest_delay{};
  // The job ends when the same rank fails in the same way this many times in a row, each time
  // before its first beat; 0: never for that reason.
  int no_progress_limit = 0;

  bool operator==(const RestartPolicy&) const = default;
};

// A node that has heard nothing from its rendezvous for this long kills its workers. The node
// counts from an earlier time than the rendezvous does, so the rendezvous need not wait any longer
// than that either.
constexpr Duration SelfFenceAfter(Duration lease) {
  return lease / 6 * 5;
}

// What a job asks of its rendezvous. Set by the first agent of a job; later ones must agree on the
// number of nodes, on exact ranks and on the tunnel.
struct JobSettings {
  int min_nodes = 1;
  int max_nodes = 1;
  // How long a round that has `min_nodes` waits for more (torchrun's last_call_timeout).
  Duration last_call = std::chrono::seconds(5);
  // How long a round may gather before the job gives up (torchrun's join_timeout).
  Duration join_timeout = std::chrono::seconds(600);
  // A node that is silent for this long has no workers left, and its ranks may be given away; it is
  // given up at SelfFenceAfter. Zero: no lease; this agent shares the daemon's process and cannot
  // fall silent.
  Duration lease = std::chrono::seconds(3);
  // Interval of an agent's keep-alives; zero: a third of the lease. At most half a lease.
  Duration keep_alive = Duration::zero();
  // How many worker failures the job survives, over all nodes (--max-restarts).
  int max_restarts = 0;
  // Each node brings its rank (NodeInfo::rank_hint), and no two may share one: torchrun's static
  // rendezvous.
  bool exact_ranks = false;
  // Workers reach the store through tunnels between their agents (--worker-store=tunnel). All nodes
  // must agree: a node without a tunnel would need the store to be open to the network.
  bool store_tunnel = false;
  ScaleUp scale_up = ScaleUp::kNow;
  RestartPolicy restart;
  // A rank is a straggler when its own time for a step exceeds the median's by more than this share
  // (job_progress.h); 0: no rank ever is.
  double straggler_threshold = 0;

  bool operator==(const JobSettings&) const = default;
};

// What an agent sends to take part: at first, and again each time its round has ended.
struct JoinRequest {
  std::string run_id;
  JobSettings settings;
  NodeInfo node;
  // Lets the agent come back; the same in every Join of a session.
  SessionToken session;
  // Which of the session's connections this comes over; increases with each.
  std::uint64_t connection = 0;
  // The last round in which it had workers, all of them gone by now: it asks for a later round.
  RoundNumber after = kNoRound;
  // The life of the job in which it last had workers; 0: none. It does not join another life: it is
  // told how that one ended.
  Incarnation ran_in = 0;
  // Why this node must not take part ("its health check ... exited with code 1"); empty: it may.
  std::string unfit;
  SpokenVersions speaks{};

  bool operator==(const JoinRequest&) const = default;
};

// One node's place in a round: everything its agent needs to start its workers.
struct Assignment {
  std::string run_id;
  Incarnation incarnation = 0;
  RoundNumber round = 0;
  // This node's rank among the nodes, and how many there are (GROUP_RANK, GROUP_WORLD_SIZE).
  int group_rank = 0;
  int group_world_size = 1;
  // Global rank of this node's local rank 0, and the total number of workers (RANK, WORLD_SIZE).
  int base_rank = 0;
  int world_size = 1;
  // The same two within this node's role (ROLE_RANK, ROLE_WORLD_SIZE).
  int role_base_rank = 0;
  int role_world_size = 1;
  // Where the workers' store is: group rank 0's address and the port it holds (MASTER_ADDR,
  // MASTER_PORT).
  std::string master_addr;
  std::uint16_t master_port = 0;
  // Group rank 0's agent serves the store, and every worker is a client
  // (TORCHELASTIC_USE_AGENT_STORE).
  bool agent_store = false;
  // Only agents connect to the store: each serves its own workers on loopback
  // (JobSettings::store_tunnel).
  bool store_tunnel = false;
  // For group rank 0 only: where the round's workers may connect from, each address once.
  std::vector<std::string> member_addresses;
  // How many of the job's restarts are spent, the same on every node (TORCHELASTIC_RESTART_COUNT).
  int restart_count = 0;
  int max_restarts = 0;
  // Why the node has this rank, for people: "keeps rank 1 from round 3".
  std::string rank_reason;

  RoundId id() const { return {incarnation, round}; }
  bool operator==(const Assignment&) const = default;
};

// How one worker failed, as seen by its agent.
struct WorkerFailure {
  int rank = -1;
  int local_rank = -1;
  // Its node: the id, which is unique, and the host name, which several may share.
  std::string node_id;
  std::string host;
  std::int64_t pid = 0;
  // The worker's exit status if it exited by itself; meaningless when `signal` is set.
  int exit_code = 0;
  // The signal that ended it, or 0.
  int signal = 0;
  // The failure in one phrase: "exited with code 3", "was killed by SIGSEGV",
  // "could not be started: ./train: No such file or directory".
  std::string what;
  // The last lines it wrote to stderr, newest last; at most kMaxStderrTail bytes.
  std::string stderr_tail;
  // Where its logs and its error file are, on `host`; empty when there are none.
  std::string log_path;
  std::string error_file;
  // Contents of the error file: "ValueError: no such layer", the end of the traceback (at most
  // kMaxTraceback bytes), and when it was written, in seconds since 1970 by that node's clock, or
  // 0.
  std::string error_message;
  std::string error_traceback;
  std::int64_t error_time = 0;
  // The operations that its node's workers were in at that time, one sentence: "rank 0 waits in
  // all-reduce 812 (fc.weight) for 30 s; rank 1 left all-reduce 811 (fc.bias) 30 s ago". Empty:
  // unknown.
  std::string operations;
  // It had not reported any progress yet, in a run whose workers report it.
  bool before_first_beat = false;
  // The user declared this failure as not restartable.
  bool final = false;

  bool operator==(const WorkerFailure&) const = default;
};
inline constexpr std::size_t kMaxStderrTail = 8 * 1024;
inline constexpr std::size_t kMaxTraceback = 16 * 1024;

// How the workers of one node ended in one round: all with exit code 0, or the first that failed.
struct WorkersOutcome {
  bool succeeded = false;
  std::optional<WorkerFailure> failure;  // set unless succeeded

  bool operator==(const WorkersOutcome&) const = default;
};

// Why a job ended.
enum class VerdictKind {
  kSucceeded,     // every worker of the last round exited with 0
  kWorkerFailed,  // a worker failed and no restart was left
  kJoinTimeout,   // a round did not complete in time
  kClosed,        // the daemon was told to end
};

// The end of a job, computed once and sent to every agent.
struct Verdict {
  VerdictKind kind = VerdictKind::kSucceeded;
  // One sentence for people, the same on every node.
  std::string sentence;
  // The first failure of the whole job, for kWorkerFailed.
  std::optional<WorkerFailure> root_cause;
  // The rounds that ran and the restarts that were spent.
  int rounds = 0;
  int restarts = 0;

  bool operator==(const Verdict&) const = default;
};

}  // namespace muster::rendezvous
