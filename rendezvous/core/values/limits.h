// Every limit of a daemon: how much of its memory and time others may take. The daemon prints this
// table (`musterd --print-limits`), and docs/security.md adds it up.
//
// A limit is enforced at the point of entry: a caller that would exceed it gets an error that names
// it, or is disconnected where no error can be delivered.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster::rendezvous {

struct Limit {
  // The unit, as a phrase: "bytes of a key".
  std::string_view of;
  std::uint64_t most = 0;
  std::string_view why;
  // The name under which refusals and disconnects are counted (LimitCounts); empty: callers only
  // wait, or violations cannot be counted.
  std::string_view name = {};
};

namespace limits {

// Connections. Those that are silent, idle or waiting each also have a share of the file
// descriptors (net/shared_port.h).
inline constexpr Limit kSilentSeconds{"seconds until a new connection must have sent something", 5,
                                      "clients send at once, and a handshake takes milliseconds"};
inline constexpr Limit kHandshakes{
    "connections between their first byte and their first call", 256,
    "each costs 70 KB and, with TLS, milliseconds; others wait, and addresses take turns"};
inline constexpr Limit kHandshakesOfAddress{"of these, from one address", 64,
                                            "so that one host alone cannot hold up the others"};
inline constexpr Limit kFailedHandshakesInASecond{
    "failed handshakes of one address in a second", 16,
    "each costs 1 to 2 ms of CPU, so an attacker can take only a few per cent"};
inline constexpr Limit kFailedHandshakesAtOnce{"of these, in a burst", 128,
                                               "all agents and tools of a node with a wrong token"};
inline constexpr Limit kVainConnectionsInASecond{
    "connections of one host in a second that never make a call", 64,
    "each costs 50 us of CPU; hosts with an authenticated agent or tool are exempt"};
inline constexpr Limit kVainConnectionsAtOnce{"of these, in a burst", 512,
                                              "all agents of a host looking for a daemon at once"};
inline constexpr Limit kBarredSeconds{
    "seconds that a host which exceeds this is blocked", 1,
    "the kernel drops its SYNs, and clients retry after a second"};
inline constexpr Limit kBarredHosts{"hosts blocked at once", 64,
                                    "the kernel compares each new connection with all of them"};
inline constexpr Limit kHandshakeSeconds{
    "seconds that a handshake may take while others wait", 1,
    "distant hosts need a third of that; a silent client makes room"};
inline constexpr Limit kIdleSeconds{
    "seconds that a connection may have no call", 10,
    "an agent always has a call open, and a tool leaves when it has its answer"};
inline constexpr Limit kIdleConnections{
    "connections without an agent", 4096,
    "each costs gRPC some memory; the oldest one from the newcomer's address is closed"};
inline constexpr Limit kStreams{"calls in progress on one connection", 128,
                                "an agent has one and a store client a few; each costs gRPC 16 KB"};
inline constexpr Limit kCallsOfConnection{
    "calls of one connection that gRPC has not freed", 256,
    "twice as many, as gRPC frees finished calls a little later", "calls_of_connection"};
inline constexpr Limit kRefusedOfConnection{
    "further calls that are refused before their connection is closed", 128,
    "clients that respect the stream limit never get there; each refusal costs 20 us"};
inline constexpr Limit kHiddenCalls{
    "calls of one connection that gRPC itself refuses", 1024,
    "such as those without a method; ours never are, and each costs 16 KB while it is read",
    "hidden_calls"};
inline constexpr Limit kCalls{"calls that neither wait nor belong to agents", 16'384,
                              "each costs gRPC 16 KB, and 16 KB more until its message is read",
                              "calls"};
inline constexpr Limit kCallsOfTenant{"of these, of one tenant", 12'288,
                                      "so that no tenant takes them all", "calls_of_tenant"};
inline constexpr Limit kCallsOfHost{"of these, of one host", 4096,
                                    "so that no single host takes them all", "calls_of_host"};
inline constexpr Limit kTenants{
    "tenants of a daemon", 1024,
    "each has keys, jobs and a journal; further token files are ignored, with a warning"};
inline constexpr Limit kTlsContexts{
    "tenants whose TLS context is kept ready", 256,
    "each takes 25 KB; the context of any other is rebuilt in a millisecond"};
inline constexpr Limit kCancelledSeconds{
    "seconds that a cancelled call still counts", 1,
    "until gRPC has certainly freed it; otherwise open-and-reset floods would count for nothing"};
inline constexpr Limit kWindowBytes{"bytes of a message accepted before its turn to be read",
                                    16 << 10, "most messages are smaller"};
inline constexpr Limit kReadBytes{
    "bytes read from a connection at once", 16 << 10,
    "gRPC creates all calls opened in them, 16 KB for each 15 bytes, before any is counted"};
inline constexpr Limit kMetadataBytes{"bytes of a call's metadata", 8 << 10,
                                      "ours takes a few hundred"};

// Messages.
inline constexpr Limit kMessageBytes{"bytes of a message", 4 << 20,
                                     "the default limit of gRPC clients"};
inline constexpr Limit kEarlyReads{"call messages read without waiting for a turn", 16,
                                   "most arrive with their call"};
inline constexpr Limit kReads{"further call messages read at once", 48,
                              "each may be 4 MiB, and its sender may stall"};
inline constexpr Limit kReadsOfTenant{"of these, of one tenant", 32,
                                      "so that no tenant takes them all; tenants take turns"};
inline constexpr Limit kReadsOfHost{"of these, of one host", 16,
                                    "so that a host that stalls delays only itself"};
inline constexpr Limit kReadSeconds{"seconds that such a read may take while others wait", 2,
                                    "4 MiB at 20 Mbit/s; slower ones are read when there is room",
                                    "read_seconds"};
inline constexpr Limit kAnswerBytes{"bytes of an answer with several values", 4 << 20,
                                    "the default limit of gRPC clients", "answer_bytes"};
inline constexpr Limit kUntakenBytes{
    "bytes of answers that clients have not read", std::uint64_t{256} << 20,
    "256 of the largest values; beyond that, the connection with the oldest answer is closed",
    "untaken_bytes"};
inline constexpr Limit kUntakenAnswers{
    "answers that clients have not read within a second", 4096,
    "each keeps its call; beyond that, the connection with the oldest answer is closed",
    "untaken_answers"};
inline constexpr Limit kEventBytes{"bytes of one message from an agent", 1 << 20,
                                   "the failures of a thousand workers with their tracebacks",
                                   "event_bytes"};
inline constexpr Limit kEventsInASecond{"events of an agent in a second", 200,
                                        "an agent sends one or two; any more are read later"};
inline constexpr Limit kEventsAtOnce{"events of an agent in a burst", 2000,
                                     "a thousand workers may start and exit at once"};
inline constexpr Limit kUnreadDirectives{
    "directives that an agent has not read", 256,
    "a live agent has a few; one that does not read is as good as gone", "unread_directives"};

// Watchers of jobs (the call Watch).
inline constexpr Limit kWatchers{"calls that watch jobs", 256,
                                 "a few for each person watching; each is sent every change"};
inline constexpr Limit kWatchersOfTenant{"of these, of one tenant", 64,
                                         "so that no tenant takes them all"};
inline constexpr Limit kWatcherSeconds{
    "seconds that a watcher has to read what it was sent", 10,
    "it is buffered for that long; a watcher that is cut off can reconnect"};

// The tunnel to the workers' store (rendezvous/tunnel). Enforced by an agent, not by a daemon.
inline constexpr Limit kTunnelStreams{
    "workers' connections of one node through a tunnel", 4096,
    "several for each of 256 workers; each costs 23 KB, and up to 320 KB while bytes wait"};
inline constexpr Limit kTunnelStreamsInAll{
    "workers' connections of all nodes through a tunnel", 65'536,
    "two for each of 32,768 workers; each takes two descriptors of the agent with the store"};
inline constexpr Limit kTunnelChunkBytes{"bytes of one tunnel message", 64 << 10,
                                         "HTTP/2's window for one stream"};
inline constexpr Limit kTunnelSilentSeconds{
    "seconds until the host at the other end of a tunnel counts as lost", 120,
    "as for a direct connection to the store; the rendezvous notices a lost node sooner"};

// The output of workers, on its way from their agents to its readers (core/log_readers.h).
inline constexpr Limit kLogReaders{"readers of workers' output", 64,
                                   "a person has one or two; each may keep its place for days"};
inline constexpr Limit kLogReadersOfTenant{"of these, of one tenant", 48,
                                           "so that no tenant takes them all"};
inline constexpr Limit kLogReadersOfJob{"of these, of one job", 16,
                                        "several for each person working on it"};
inline constexpr Limit kLogDeliveries{
    "agents' deliveries to these readers", 256,
    "each costs 96 KiB, 64 KiB of it a chunk, and at most the size of a message"};
inline constexpr Limit kLogDeliveriesOfTenant{"of these, of one tenant", 192,
                                              "so that no tenant takes them all"};
inline constexpr Limit kLogDeliveriesOfReader{
    "of these, of one reader", 128, "one for each node that it follows; nobody can read more"};
inline constexpr Limit kLogChunkBytes{"bytes of output in one chunk", 64 << 10,
                                      "HTTP/2's window for one stream"};
inline constexpr Limit kLogRankRanges{"ranges of ranks that a reader may name", 256,
                                      "a hand-written list is shorter"};
inline constexpr Limit kLogPositions{
    "streams that a reader may name to resume from", 4096,
    "two for each rank of 128 nodes with 16 GPUs each, as many as it can follow"};
inline constexpr Limit kLogAnswerSeconds{"seconds until an agent must have begun a delivery", 10,
                                         "it begins at once; a stalled one is not waited for"};
inline constexpr Limit kLogAfterJobSeconds{
    "seconds that a reader has after its job's agents have left", 10,
    "agents deliver for 5 s after they leave, and a stopping daemon waits no longer than this"};
inline constexpr Limit kLogRounds{
    "rounds of a job whose rank placement is kept", 16,
    "100 bytes for each node; older output is in the nodes' log directories"};

// Jobs.
inline constexpr Limit kJobs{"jobs", 1024, "a cluster's worth of experiments", "jobs"};
inline constexpr Limit kNodesOfJob{"nodes of a job", 100'000, "ten times the largest cluster",
                                   "nodes_of_job"};
inline constexpr Limit kNodes{"nodes of all jobs", 100'000,
                              "each costs 119 KiB, nearly all of it TLS", "nodes"};
inline constexpr Limit kEndedJobsShown{
    "ended jobs that are shown", 64,
    "each costs at most 40 KB with its rounds, not counting its failure"};
inline constexpr Limit kRoundReasonBytes{
    "bytes of the reason that a round ended, as kept", 512,
    "64 rounds of 64 jobs are sent at once, and a node's reason may have 4 KiB"};
inline constexpr Limit kRanksToldOfNode{"ranks of a node whose steps are shown", 256,
                                        "each costs half a KiB; a node has a few"};
inline constexpr Limit kRankAlertsOfNode{"alerts of a node's ranks that are shown", 64,
                                         "each costs a quarter of a KiB; a node has few ranks"};
inline constexpr Limit kEndedJobs{"ended jobs that are remembered", 1024,
                                  "for nodes that were away when their job ended"};

// What a job's store holds.
inline constexpr Limit kKeyBytes{"bytes of a key", 512, "keys are names", "key_bytes"};
inline constexpr Limit kValueBytes{"bytes of a value", 1 << 20,
                                   "a store is for addresses and counters, not for models",
                                   "value_bytes"};
inline constexpr Limit kKeysOfJob{"keys of a job", 100'000, "several for each rank", "keys_of_job"};
inline constexpr Limit kStoreBytesOfJob{"bytes of a job's keys and values", 64 << 20,
                                        "640 for each of that many keys", "store_bytes_of_job"};
inline constexpr Limit kStoreBytes{
    "bytes of all jobs' keys and values, counting 96 more for each key", std::uint64_t{512} << 20,
    "a job that needs much can have it, and all together do not exhaust the machine's memory",
    "store_bytes"};
inline constexpr Limit kStoreBytesOfTenant{
    "bytes of one tenant's keys and values, counting 96 more for each key",
    std::uint64_t{256} << 20, "so that no tenant takes everything", "store_bytes_of_tenant"};
inline constexpr Limit kWaitsOfJob{"waits of a job", 100'000, "one for each rank", "waits_of_job"};
inline constexpr Limit kWaitBytesOfJob{"bytes of the keys that a job's waits name", 64 << 20,
                                       "as for its keys", "wait_bytes_of_job"};
inline constexpr Limit kWaitingCalls{"calls that wait, over all jobs", 20'000,
                                     "each costs gRPC 16 KB", "waiting_calls"};
inline constexpr Limit kWaitingCallsOfTenant{"of these, of one tenant", 15'000,
                                             "so that no tenant takes them all",
                                             "waiting_calls_of_tenant"};
inline constexpr Limit kWaitingBytes{
    "bytes of the keys that waiting calls name, counting 64 more for each key", 128 << 20,
    "one call may name as many keys as fit in a message, and 20,000 such calls would not fit",
    "waiting_bytes"};

inline constexpr const Limit* kAll[] = {
    // Connections.
    &kSilentSeconds, &kHandshakes, &kHandshakesOfAddress, &kFailedHandshakesInASecond,
    &kFailedHandshakesAtOnce, &kVainConnectionsInASecond, &kVainConnectionsAtOnce, &kBarredSeconds,
    &kBarredHosts, &kHandshakeSeconds, &kIdleSeconds, &kIdleConnections, &kStreams,
    &kCallsOfConnection, &kRefusedOfConnection, &kHiddenCalls, &kCalls, &kCallsOfTenant,
    &kCallsOfHost, &kTenants, &kTlsContexts, &kCancelledSeconds, &kWindowBytes, &kReadBytes,
    &kMetadataBytes,
    // Messages.
    &kMessageBytes, &kEarlyReads, &kReads, &kReadsOfTenant, &kReadsOfHost, &kReadSeconds,
    &kAnswerBytes, &kUntakenBytes, &kUntakenAnswers, &kEventBytes, &kEventsInASecond,
    &kEventsAtOnce, &kUnreadDirectives,
    // Watchers of jobs.
    &kWatchers, &kWatchersOfTenant, &kWatcherSeconds,
    // The tunnel.
    &kTunnelStreams, &kTunnelStreamsInAll, &kTunnelChunkBytes, &kTunnelSilentSeconds,
    // The output of workers.
    &kLogReaders, &kLogReadersOfTenant, &kLogReadersOfJob, &kLogDeliveries, &kLogDeliveriesOfTenant,
    &kLogDeliveriesOfReader, &kLogChunkBytes, &kLogRankRanges, &kLogPositions, &kLogAnswerSeconds,
    &kLogAfterJobSeconds, &kLogRounds,
    // Jobs.
    &kJobs, &kNodesOfJob, &kNodes, &kEndedJobsShown, &kRoundReasonBytes, &kRanksToldOfNode,
    &kRankAlertsOfNode, &kEndedJobs,
    // What a job's store holds.
    &kKeyBytes, &kValueBytes, &kKeysOfJob, &kStoreBytesOfJob, &kStoreBytes, &kStoreBytesOfTenant,
    &kWaitsOfJob, &kWaitBytesOfJob, &kWaitingCalls, &kWaitingCallsOfTenant, &kWaitingBytes};

}  // namespace limits

}  // namespace muster::rendezvous
