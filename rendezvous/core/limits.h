// Every limit of a daemon: how much of its memory and its time others may take. The daemon prints
// this table (`musterd --print-limits`), and docs/security.md adds it up.
//
// A limit is enforced where what it limits comes in, and whoever would break it is refused with a
// sentence that names it, or cut off where no sentence can reach him.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster::rendezvous {

struct Limit {
  // Of what there may be so much: "bytes of a key".
  std::string_view of;
  std::uint64_t most = 0;
  std::string_view why;
  // What it is called where those are counted who were refused for it, or cut off
  // (limit_counts.h); empty: others only wait, or nobody can know.
  std::string_view name = {};
};

namespace limits {

// Connections. Those that are silent, idle or wait have a share of the file descriptors each, too
// (net/shared_port.h).
inline constexpr Limit kSilentSeconds{
    "seconds until a new connection has said something", 5,
    "a client speaks at once, and a handshake takes milliseconds"};
inline constexpr Limit kHandshakes{
    "connections between their first byte and their first call", 256,
    "each costs 70 KB and, with TLS, milliseconds; the others wait, and addresses take turns"};
inline constexpr Limit kHandshakesOfAddress{
    "of these, from one address", 64, "so that it takes more than one host to hold up the others"};
inline constexpr Limit kFailedHandshakesInASecond{
    "handshakes of one address in a second that fail", 16,
    "each takes 1 to 2 ms of a processor: what an attacker costs others is a few per cent"};
inline constexpr Limit kFailedHandshakesAtOnce{
    "of these, at once", 128, "a node's agents and tools that have the wrong token, all together"};
inline constexpr Limit kVainConnectionsInASecond{
    "connections of one host in a second that come to nothing", 64,
    "each takes 50 us of a processor; a host where an agent or a tool has been let in is exempt"};
inline constexpr Limit kVainConnectionsAtOnce{"of these, at once", 512,
                                              "a host's agents that all ask after a daemon"};
inline constexpr Limit kBarredSeconds{
    "seconds that a host is kept away which opens more of them", 1,
    "what begins a connection is dropped by the kernel, and a client tries again after a second"};
inline constexpr Limit kBarredHosts{"hosts that are kept away at once", 64,
                                    "the kernel compares each new connection with all of them"};
inline constexpr Limit kHandshakeSeconds{
    "seconds that one of these may take while others wait", 1,
    "far hosts need a third of that, and who says nothing more makes room"};
inline constexpr Limit kIdleSeconds{
    "seconds that a connection may be without a call", 10,
    "an agent has a call open all the time, and a tool leaves when it has its answer"};
inline constexpr Limit kIdleConnections{
    "connections without an agent", 4096,
    "each costs gRPC some memory; the oldest of the newcomer's own address makes room"};
inline constexpr Limit kStreams{
    "calls under way over one connection", 128,
    "an agent has one and a client of the store a few; each costs gRPC 16 KB"};
inline constexpr Limit kCallsOfConnection{
    "calls of one connection that gRPC has not freed", 256,
    "twice as many, as those that have ended are freed a little later", "calls_of_connection"};
inline constexpr Limit kRefusedOfConnection{
    "calls that are refused beyond these before their connection is ended", 128,
    "who heeds the limit of open streams never comes so far; to refuse takes 20 us each"};
inline constexpr Limit kHiddenCalls{
    "calls of one connection that gRPC refuses by itself", 1024,
    "without a method, say: none of ours is, and each costs 16 KB while there is more to read",
    "hidden_calls"};
inline constexpr Limit kCalls{"calls that neither wait nor are agents'", 16'384,
                              "each costs gRPC 16 KB, and 16 KB more until its message is read",
                              "calls"};
inline constexpr Limit kCallsOfTenant{"of these, of one tenant", 12'288,
                                      "so that no tenant has all of them", "calls_of_tenant"};
inline constexpr Limit kCallsOfHost{"of these, of one host", 4096,
                                    "so that it takes several hosts to have all of them",
                                    "calls_of_host"};
inline constexpr Limit kCancelledSeconds{
    "seconds that a call counts which its client cancelled", 1,
    "until gRPC has freed it for certain; opened and reset at once, it would count for nothing"};
inline constexpr Limit kWindowBytes{"bytes of a message that are taken before its turn to be read",
                                    16 << 10, "what most messages have, or less"};
inline constexpr Limit kReadBytes{
    "bytes that are read of a connection at once", 16 << 10,
    "gRPC makes all calls that these open, 16 KB for 15 bytes, before any of them is counted"};
inline constexpr Limit kMetadataBytes{"bytes of a call's metadata", 8 << 10,
                                      "ours are some hundred"};

// Messages.
inline constexpr Limit kMessageBytes{"bytes of a message", 4 << 20,
                                     "what clients of gRPC take unless they are told otherwise"};
inline constexpr Limit kEarlyReads{"messages of calls that are read before anybody asks", 16,
                                   "most are there with their call, and need no turn then"};
inline constexpr Limit kReads{"messages of calls that are read at once beside these", 48,
                              "each may be 4 MiB and be held back before its end"};
inline constexpr Limit kReadsOfTenant{"of these, of one tenant", 32,
                                      "so that no tenant has all of them; tenants take turns"};
inline constexpr Limit kReadsOfHost{"of these, of one host", 16,
                                    "so that who holds them back delays himself"};
inline constexpr Limit kReadSeconds{"seconds that one of these may take while others wait", 2,
                                    "4 MiB over 20 Mbit/s; who has less is read when there is room",
                                    "read_seconds"};
inline constexpr Limit kAnswerBytes{"bytes of an answer with several values", 4 << 20,
                                    "what clients of gRPC take unless they are told otherwise",
                                    "answer_bytes"};
inline constexpr Limit kUntakenBytes{
    "bytes of answers that clients have not taken", std::uint64_t{256} << 20,
    "256 of the largest values; beyond, the connection with the oldest answer is ended",
    "untaken_bytes"};
inline constexpr Limit kUntakenAnswers{
    "answers that clients have not taken after a second", 4096,
    "each keeps its call; beyond, the connection with the oldest answer is ended",
    "untaken_answers"};
inline constexpr Limit kEventBytes{"bytes of what an agent says at once", 1 << 20,
                                   "the ends of a thousand workers with their tracebacks",
                                   "event_bytes"};
inline constexpr Limit kEventsInASecond{"events of an agent in a second", 200,
                                        "an agent has one or two; more are read that much later"};
inline constexpr Limit kEventsAtOnce{"events of an agent that are read without delay", 2000,
                                     "a thousand workers may start and end at once"};
inline constexpr Limit kUnreadDirectives{
    "directives that an agent leaves unread", 256,
    "one that reads has a few; one that does not is as good as gone", "unread_directives"};

// Who watches jobs (the call Watch).
inline constexpr Limit kWatchers{"calls that watch jobs", 256,
                                 "some for each person who looks; each is told of every change"};
inline constexpr Limit kWatchersOfTenant{"of these, of one tenant", 64,
                                         "so that no tenant has all of them"};
inline constexpr Limit kWatcherSeconds{
    "seconds until one of these has taken what it was told", 10,
    "what is on its way to it is kept for as long, and it can come back and ask again"};

// The tunnel to the workers' store (rendezvous/tunnel), which is an agent's and not a daemon's.
inline constexpr Limit kTunnelStreams{
    "workers' connections of one node through a tunnel", 4096,
    "some for each of 256 workers; each costs 23 KB, and 320 KB at most while bytes wait"};
inline constexpr Limit kTunnelStreamsInAll{
    "workers' connections of all nodes through a tunnel", 65'536,
    "two for each of 32,768 workers; each takes two descriptors of the agent that has the store"};
inline constexpr Limit kTunnelChunkBytes{"bytes of what a tunnel carries at once", 64 << 10,
                                         "as much as HTTP/2 lets be on its way over one stream"};
inline constexpr Limit kTunnelSilentSeconds{
    "seconds until a host at the other end of a tunnel is given up", 120,
    "as for a direct connection to the store; that a node is lost the rendezvous says earlier"};

// The output of workers, on its way from their agents to who reads it (core/log_readers.h).
inline constexpr Limit kLogReaders{"readers of workers' output", 64,
                                   "a person has one or two; each may keep its place for days"};
inline constexpr Limit kLogReadersOfTenant{"of these, of one tenant", 48,
                                           "so that no tenant has all of them"};
inline constexpr Limit kLogReadersOfJob{"of these, of one job", 16,
                                        "some for each who works on it"};
inline constexpr Limit kLogDeliveries{
    "deliveries of agents to these", 256,
    "each costs 96 KiB, of which 64 KiB are a chunk, and at most what a message may have"};
inline constexpr Limit kLogDeliveriesOfTenant{"of these, of one tenant", 192,
                                              "so that no tenant has all of them"};
inline constexpr Limit kLogDeliveriesOfReader{
    "of these, of one reader", 128, "that he follows more nodes at once than anybody can read"};
inline constexpr Limit kLogChunkBytes{"bytes of output that are brought at once", 64 << 10,
                                      "as much as HTTP/2 lets be on its way over one stream"};
inline constexpr Limit kLogRankRanges{"ranges of ranks that a reader may name", 256,
                                      "a list that somebody has written by hand is shorter"};
inline constexpr Limit kLogPositions{
    "streams that a reader may name to go on where he was", 4096,
    "two of each rank of 128 nodes, which is as many as he can follow, with 16 GPUs each"};
inline constexpr Limit kLogAnswerSeconds{
    "seconds until an agent has begun to bring what it was asked for", 10,
    "it does so at once; one that stands still is not waited for"};
inline constexpr Limit kLogAfterJobSeconds{
    "seconds that a reader has after his job's agents have left, and an agent that has", 10,
    "agents bring what is left for 5 s, and the end of a daemon waits for no reader for longer"};
inline constexpr Limit kLogRounds{
    "rounds of a job of which it is known who ran which ranks", 16,
    "100 bytes for each node; the output of earlier ones is in the nodes' log directories"};

// Jobs.
inline constexpr Limit kJobs{"jobs", 1024, "a cluster's worth of experiments", "jobs"};
inline constexpr Limit kNodesOfJob{"nodes of a job", 100'000, "ten times the largest cluster",
                                   "nodes_of_job"};
inline constexpr Limit kNodes{"nodes of all jobs", 100'000,
                              "each costs 119 KiB, nearly all of it TLS", "nodes"};
inline constexpr Limit kEndedJobsShown{"ended jobs that are shown", 64,
                                       "each costs 40 KB at most with its rounds, failure apart"};
inline constexpr Limit kRoundReasonBytes{
    "bytes of why a round was over, as they are kept", 512,
    "64 rounds of 64 jobs are told at once, and what a node says may have 4 KiB"};
inline constexpr Limit kRanksToldOfNode{"ranks of a node whose steps are shown", 256,
                                        "each costs half a KiB; a node has a few"};
inline constexpr Limit kTroublesToldOfNode{"troubles of a node's ranks that are shown", 64,
                                           "each costs a quarter of a KiB; a node has few ranks"};
inline constexpr Limit kEndedJobs{"ended jobs that are remembered", 1024,
                                  "for a node that was away when its job ended"};

// What a job's store holds.
inline constexpr Limit kKeyBytes{"bytes of a key", 512, "keys are names", "key_bytes"};
inline constexpr Limit kValueBytes{"bytes of a value", 1 << 20,
                                   "a store is for addresses and counters, not for models",
                                   "value_bytes"};
inline constexpr Limit kKeysOfJob{"keys of a job", 100'000, "some for each rank", "keys_of_job"};
inline constexpr Limit kStoreBytesOfJob{"bytes of a job's keys and values", 64 << 20,
                                        "640 for each of as many keys", "store_bytes_of_job"};
inline constexpr Limit kStoreBytes{
    "bytes of all jobs' keys and values, with 96 beside each key", std::uint64_t{512} << 20,
    "a job that needs much has it, and all together do not take the machine's memory",
    "store_bytes"};
inline constexpr Limit kStoreBytesOfTenant{
    "bytes of one tenant's keys and values, with 96 beside each key", std::uint64_t{256} << 20,
    "so that no tenant takes what is there for all", "store_bytes_of_tenant"};
inline constexpr Limit kWaitsOfJob{"waits of a job", 100'000, "one for each rank", "waits_of_job"};
inline constexpr Limit kWaitBytesOfJob{"bytes of what a job's waits name", 64 << 20,
                                       "as for its keys", "wait_bytes_of_job"};
inline constexpr Limit kWaitingCalls{"calls that wait, over all jobs", 20'000,
                                     "each costs gRPC 16 KB", "waiting_calls"};
inline constexpr Limit kWaitingCallsOfTenant{"of these, of one tenant", 15'000,
                                             "so that no tenant has all of them",
                                             "waiting_calls_of_tenant"};
inline constexpr Limit kWaitingBytes{
    "bytes of what these calls name, with 64 beside each key", 128 << 20,
    "one call may name as many keys as a message holds, and 20,000 of these would not fit",
    "waiting_bytes"};

inline constexpr const Limit* kAll[] = {
    &kSilentSeconds,
    &kHandshakes,
    &kHandshakesOfAddress,
    &kFailedHandshakesInASecond,
    &kFailedHandshakesAtOnce,
    &kVainConnectionsInASecond,
    &kVainConnectionsAtOnce,
    &kBarredSeconds,
    &kBarredHosts,
    &kHandshakeSeconds,
    &kIdleSeconds,
    &kIdleConnections,
    &kStreams,
    &kCallsOfConnection,
    &kRefusedOfConnection,
    &kHiddenCalls,
    &kCalls,
    &kCallsOfTenant,
    &kCallsOfHost,
    &kCancelledSeconds,
    &kWindowBytes,
    &kReadBytes,
    &kMetadataBytes,
    &kMessageBytes,
    &kEarlyReads,
    &kReads,
    &kReadsOfTenant,
    &kReadsOfHost,
    &kReadSeconds,
    &kAnswerBytes,
    &kUntakenBytes,
    &kUntakenAnswers,
    &kEventBytes,
    &kEventsInASecond,
    &kEventsAtOnce,
    &kUnreadDirectives,
    &kWatchers,
    &kWatchersOfTenant,
    &kWatcherSeconds,
    &kTunnelStreams,
    &kTunnelStreamsInAll,
    &kTunnelChunkBytes,
    &kTunnelSilentSeconds,
    &kLogReaders,
    &kLogReadersOfTenant,
    &kLogReadersOfJob,
    &kLogDeliveries,
    &kLogDeliveriesOfTenant,
    &kLogDeliveriesOfReader,
    &kLogChunkBytes,
    &kLogRankRanges,
    &kLogPositions,
    &kLogAnswerSeconds,
    &kLogAfterJobSeconds,
    &kLogRounds,
    &kJobs,
    &kNodesOfJob,
    &kNodes,
    &kEndedJobsShown,
    &kRoundReasonBytes,
    &kRanksToldOfNode,
    &kTroublesToldOfNode,
    &kEndedJobs,
    &kKeyBytes,
    &kValueBytes,
    &kKeysOfJob,
    &kStoreBytesOfJob,
    &kStoreBytes,
    &kStoreBytesOfTenant,
    &kWaitsOfJob,
    &kWaitBytesOfJob,
    &kWaitingCalls,
    &kWaitingCallsOfTenant,
    &kWaitingBytes,
};

}  // namespace limits
}  // namespace muster::rendezvous
