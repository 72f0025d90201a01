// The values that rendezvous decisions are made of and made into. Plain data: copied freely,
// read-only once made, no behaviour beyond printing. `proto/rendezvous.proto` is their form on the
// wire.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/shared_value.h"
#include "rendezvous/core/protocol.h"

namespace muster::rendezvous {

// Time by the daemon's own monotonic clock. The core is handed `now`; it never asks for it. No
// other node's clock is ever compared with it.
using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

// One connection of one agent, numbered by whoever drives the Coordinator. Never reused within a
// process: an agent that comes back after its connection broke has a new one.
using AgentId = std::uint64_t;

// Rounds of a job are numbered from 0 and never reused.
using RoundNumber = std::int64_t;
inline constexpr RoundNumber kNoRound = -1;

// One life of one job, from the first Join to the last goodbye. Another job of the same name has a
// different one, even if the daemon was restarted in between.
using Incarnation = std::uint64_t;

// The fencing token: which round of which life of the job something is about. Whatever does not
// name the current one is never acted upon.
struct RoundId {
  Incarnation incarnation = 0;
  RoundNumber number = kNoRound;

  bool operator==(const RoundId&) const = default;
};

// How an agent that comes back over another connection proves that it is the one that attends: a
// random name that it chose itself and nobody can guess. Empty: it cannot come back.
using SessionToken = std::string;

// What one node brings to a job. The agent makes it before each join.
struct NodeInfo {
  // Unique for each agent process; [A-Za-z0-9][A-Za-z0-9._-]{0,63}. Ranks stay with it across
  // rounds.
  std::string node_id;
  // The name by which people know the node. Only shown, never resolved.
  std::string host;
  // Where the workers of other nodes reach this one: an IP address, or a name that the user gave.
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
  // What the workers may use, as the user names it (entries of CUDA_VISIBLE_DEVICES). Only shown.
  std::vector<std::string> devices;
  // The agent can bring what its workers print (LogWanted); one of an older Muster cannot.
  bool delivers_logs = false;

  bool operator==(const NodeInfo&) const = default;
};

// As all hold it who hold it for long: of ten thousand nodes, a job's record is taken in a moment.
using SharedNode = base::SharedValue<NodeInfo>;

// When a newcomer gets a place that is free.
enum class ScaleUp {
  kNow,          // at once: the round ends to let it in
  kNextRestart,  // when the round ends for another reason
};

// How a job is restarted after workers fail, apart from the budget (JobSettings::max_restarts).
struct RestartPolicy {
  // Restarts longer ago than this do not count against the budget; zero: all count.
  Duration window{};
  // The first restart in a row waits for `delay`, each further one twice as long as the one before,
  // but at most `longest_delay`. A restart is the first in a row when none was in the last ten
  // times `longest_delay`.
  Duration delay{};
  Duration longest_delay{};
  // The job ends when the same rank fails in the same way this many times in a row, each time
  // before its first beat; 0: never for that reason.
  int no_progress_limit = 0;

  bool operator==(const RestartPolicy&) const = default;
};

// After how long without a word from its rendezvous a node kills its workers. The node counts from
// an earlier time than the rendezvous does, so the rendezvous need not put up with its silence any
// longer than that either.
constexpr Duration SelfFenceAfter(Duration lease) {
  return lease / 6 * 5;
}

// What a job asks of its rendezvous. The first agent of a job brings it; later ones must agree on
// the number of nodes, on exact ranks and on the tunnel.
struct JobSettings {
  int min_nodes = 1;
  int max_nodes = 1;
  // How long a round that has `min_nodes` waits for more (torchrun's last_call_timeout).
  Duration last_call = std::chrono::seconds(5);
  // How long a round may gather before the job gives up (torchrun's join_timeout).
  Duration join_timeout = std::chrono::seconds(600);
  // A node that is silent for this long has no workers left, and its ranks may be given away; it is
  // given up at SelfFenceAfter. Zero: this agent cannot fall silent (it shares the daemon's
  // process), and has no lease.
  Duration lease = std::chrono::seconds(3);
  // How often an agent says that it is alive; zero: every third of the lease. At least twice in a
  // lease in any case.
  Duration keep_alive = Duration::zero();
  // How many worker failures the job survives, over all nodes (--max-restarts).
  int max_restarts = 0;
  // Each node brings its rank (NodeInfo::rank_hint), and no two may bring the same: torchrun's
  // static rendezvous.
  bool exact_ranks = false;
  // Workers reach the store through tunnels between their agents (--worker-store=tunnel). All nodes
  // must agree: one without a tunnel would want the store to be open to the network.
  bool store_tunnel = false;
  ScaleUp scale_up = ScaleUp::kNow;
  RestartPolicy restart;
  // A rank is a straggler when its own time of a step is longer than the median's by more than this
  // share (job/stragglers.h); 0: none ever is.
  double straggler_threshold = 0;

  bool operator==(const JobSettings&) const = default;
};

// What an agent sends to take part: the first time, and again each time its round has ended.
struct JoinRequest {
  std::string run_id;
  JobSettings settings;
  NodeInfo node;
  // With it the agent may come back; the same in every Join of an attendance.
  SessionToken session;
  // Over which of the session's connections this comes: a later one has a greater number.
  std::uint64_t connection = 0;
  // The last round in which it had workers, all of them gone by now: it asks for a later round.
  RoundNumber after = kNoRound;
  // The life of the job in which it last had workers; 0: none. It does not take part in another
  // life: it is told how that one ended.
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
  // The same two among the workers of this node's role (ROLE_RANK, ROLE_WORLD_SIZE).
  int role_base_rank = 0;
  int role_world_size = 1;
  // Where the workers' store is: group rank 0's address and the port it holds (MASTER_ADDR,
  // MASTER_PORT).
  std::string master_addr;
  std::uint16_t master_port = 0;
  // Group rank 0's agent serves it, and every worker is a client (TORCHELASTIC_USE_AGENT_STORE).
  bool agent_store = false;
  // Only agents connect there: each serves its own workers on loopback (JobSettings::store_tunnel).
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

// How one worker failed, as its agent saw it.
struct WorkerFailure {
  int rank = -1;
  int local_rank = -1;
  // Its node: the id, which is unique, and the host name, which several may share.
  std::string node_id;
  std::string host;
  std::int64_t pid = 0;
  // The worker's exit status when it exited by itself; meaningless when `signal` is set.
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
  // What the error file says: "ValueError: no such layer", the traceback (the last kMaxTraceback
  // bytes at most), and when it was written, in seconds since 1970 by that node's clock, or 0.
  std::string error_message;
  std::string error_traceback;
  std::int64_t error_time = 0;
  // In which operations the workers of its node were then, one sentence: "rank 0 waits in
  // all-reduce 812 (fc.weight) for 30 s; rank 1 left all-reduce 811 (fc.bias) 30 s ago". Empty: not
  // known.
  std::string operations;
  // It had not reported any progress yet, in a run where workers do.
  bool before_first_beat = false;
  // The user said that such a failure must not be followed by a restart.
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

// The end of a job, computed once and told to every agent.
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
