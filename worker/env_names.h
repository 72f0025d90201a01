// The names of the environment variables that tell a worker its place in the job: torchrun's own,
// so that programs written for torchrun need no change. The launcher sets them, the trainer reads
// them; this header depends on nothing, so that both can include it.
#pragma once

namespace muster::worker::env {

// Ranks and sizes. RANK is global, LOCAL_RANK counts on this node, GROUP_RANK is the node's own
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
// "True" if the agent serves that store and every rank is its client, else "False". PyTorch
// compares the text with "True", so the case matters.
inline constexpr char kUseAgentStore[] = "TORCHELASTIC_USE_AGENT_STORE";

// The job. torch.distributed.is_torchelastic_launched() checks whether the run id is set.
inline constexpr char kRunId[] = "TORCHELASTIC_RUN_ID";
inline constexpr char kRestartCount[] = "TORCHELASTIC_RESTART_COUNT";
inline constexpr char kMaxRestarts[] = "TORCHELASTIC_MAX_RESTARTS";
// HOST:PORT of the job's rendezvous, for `muster kv` and `muster status`, and the worker's round, a
// new number each time the job's workers are started. Unset if the rendezvous has no port.
inline constexpr char kRendezvousEndpoint[] = "MUSTER_RDZV_ENDPOINT";
inline constexpr char kRound[] = "MUSTER_ROUND";

// The file for a worker's error report in JSON; empty if there is no log directory.
inline constexpr char kErrorFile[] = "TORCHELASTIC_ERROR_FILE";
// Names of the signals the agent handles, comma-separated.
inline constexpr char kSignalsToHandle[] = "TORCHELASTIC_SIGNALS_TO_HANDLE";
// The watchdog's FIFO; set only if one is in use.
inline constexpr char kTimerFile[] = "TORCHELASTIC_TIMER_FILE";
// The Unix datagram socket for a worker's progress reports (hang/beat_socket.h); set only if in
// use.
inline constexpr char kBeatSocket[] = "MUSTER_BEAT_SOCKET";
// Where a worker may log its last operations (flight_layout.h): a file, common to all workers of a
// node, and the offset of this worker's log in it, in bytes. Unset if the launcher has no memory
// for it.
inline constexpr char kFlightLog[] = "MUSTER_FLIGHT_LOG";
inline constexpr char kFlightOffset[] = "MUSTER_FLIGHT_OFFSET";

// Inherited if set; otherwise the agent sets a default.
inline constexpr char kNcclAsyncErrorHandling[] = "TORCH_NCCL_ASYNC_ERROR_HANDLING";
inline constexpr char kOmpNumThreads[] = "OMP_NUM_THREADS";
// The network interface that Gloo uses.
inline constexpr char kGlooSocketIfname[] = "GLOO_SOCKET_IFNAME";

// The devices a worker may use.
inline constexpr char kCudaVisibleDevices[] = "CUDA_VISIBLE_DEVICES";

// Marks the processes that come from an agent's workers (tree/orphan_hunt.h). Set by the worker
// group; for internal use only.
inline constexpr char kAgentId[] = "MUSTER_AGENT_ID";

}  // namespace muster::worker::env
