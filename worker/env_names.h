// The names of the environment variables through which a worker learns its place in the job:
// torchrun's own names, so that programs written for torchrun need no change. The launcher writes
// them, the trainer reads them; this header depends on nothing, so that both can include it.
#pragma once

namespace muster::worker::env {

// Ranks and sizes. RANK is global; LOCAL_RANK counts on this node; GROUP_RANK is the node's own
// rank.
inline constexpr char kRank[] = "RANK";
inline constexpr char kLocalRank[] = "LOCAL_RANK";
inline constexpr char kGroupRank[] = "GROUP_RANK";
inline constexpr char kWorldSize[] = "WORLD_SIZE";
inline constexpr char kLocalWorldSize[] = "LOCAL_WORLD_SIZE";
inline constexpr char kGroupWorldSize[] = "GROUP_WORLD_SIZE";

// The worker's role, and its rank and the number of workers within that role.
inline constexpr char kRoleName[] = "ROLE_NAME";
inline constexpr char kRoleRank[] = "ROLE_RANK";
inline constexpr char kRoleWorldSize[] = "ROLE_WORLD_SIZE";

// Where the workers' store is.
inline constexpr char kMasterAddr[] = "MASTER_ADDR";
inline constexpr char kMasterPort[] = "MASTER_PORT";
// "True" when the agent serves that store and every rank is its client, else "False". PyTorch
// compares the text with "True", so the case matters.
inline constexpr char kUseAgentStore[] = "TORCHELASTIC_USE_AGENT_STORE";

// The job. The presence of the run id is what torch.distributed.is_torchelastic_launched() looks
// at.
inline constexpr char kRunId[] = "TORCHELASTIC_RUN_ID";
inline constexpr char kRestartCount[] = "TORCHELASTIC_RESTART_COUNT";
inline constexpr char kMaxRestarts[] = "TORCHELASTIC_MAX_RESTARTS";
// HOST:PORT of the job's rendezvous, by which `muster kv` and `muster status` find it; and the
// worker's round, a new number each time the job's workers are started. Not set where the
// rendezvous has no port.
inline constexpr char kRendezvousEndpoint[] = "MUSTER_RDZV_ENDPOINT";
inline constexpr char kRound[] = "MUSTER_ROUND";

// Where a worker leaves its last words as JSON; empty when there is no log directory.
inline constexpr char kErrorFile[] = "TORCHELASTIC_ERROR_FILE";
// Names of the signals the agent handles, comma-separated.
inline constexpr char kSignalsToHandle[] = "TORCHELASTIC_SIGNALS_TO_HANDLE";
// The watchdog's FIFO; set only where one is in use.
inline constexpr char kTimerFile[] = "TORCHELASTIC_TIMER_FILE";
// The Unix datagram socket to which a worker may report progress (beat.h); set only where one is in
// use.
inline constexpr char kBeatSocket[] = "MUSTER_BEAT_SOCKET";
// Where a worker may keep a log of its last operations (flight/flight_layout.h): the file, which is
// the same for all workers of a node, and the place of this worker's log in it, in bytes. Not set
// where the launcher has no memory for it.
inline constexpr char kFlightLog[] = "MUSTER_FLIGHT_LOG";
inline constexpr char kFlightOffset[] = "MUSTER_FLIGHT_OFFSET";

// Inherited when set; the agent fills in a default otherwise.
inline constexpr char kNcclAsyncErrorHandling[] = "TORCH_NCCL_ASYNC_ERROR_HANDLING";
inline constexpr char kOmpNumThreads[] = "OMP_NUM_THREADS";
// The network interface that Gloo uses.
inline constexpr char kGlooSocketIfname[] = "GLOO_SOCKET_IFNAME";

// The devices a worker may use.
inline constexpr char kCudaVisibleDevices[] = "CUDA_VISIBLE_DEVICES";

// By this an agent finds the processes that came from its workers (agent_mark.h). Set by the worker
// group; not for anybody else's use.
inline constexpr char kAgentId[] = "MUSTER_AGENT_ID";

}  // namespace muster::worker::env
