// What Muster asks of an etcd, in its own words: transactions, leases and a watch, as values.
// https://etcd.io/docs/v3.4/learning/api/ says what they mean.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::rendezvous::etcd {

// Of the whole etcd; grows with each transaction that changes anything.
using Revision = std::int64_t;
// 0: none.
using LeaseId = std::int64_t;

// A key that there is.
struct KeyValue {
  std::string key;
  std::string value;
  Revision created = 0;  // since when there is the key; one deleted in between is another
  LeaseId lease = 0;     // with which it ends

  bool operator==(const KeyValue&) const = default;
};

// All keys from `key` up to, and without, `end`.
struct Range {
  std::string key;
  std::string end;
};

// What has become of a key.
struct Change {
  Revision revision = 0;
  std::string key;
  std::optional<std::string> value;  // nullopt: it was deleted
};

// Operations of a transaction. Keys from `key` up to, and without, `end`; empty: `key` alone.
struct Put {
  std::string key;
  std::string value;
  LeaseId lease = 0;
};
struct Delete {
  std::string key;
  std::string end{};
};
struct Get {
  std::string key;
  std::string end{};
  int limit = 0;  // keys at most; 0: all
};
using Operation = std::variant<Put, Delete, Get>;

// Of a transaction: the key was created in this revision (0: there is none).
struct WasCreated {
  std::string key;
  Revision in = 0;
};
// The key's value is this.
struct HasValue {
  std::string key;
  std::string value;
};
using Condition = std::variant<WasCreated, HasValue>;

// If all conditions hold, `then` is done, else `otherwise`; at one moment, whole or not at all. No
// key may be changed twice in either.
struct Transaction {
  std::vector<Condition> conditions;
  std::vector<Operation> then;
  std::vector<Operation> otherwise{};
};

struct Outcome {
  bool held = false;  // the conditions did
  Revision revision = 0;
  // What each Get of the operations that were done has found, in their order.
  struct Found {
    std::vector<KeyValue> keys;  // by key
    bool more = false;           // the limit has left some out
  };
  std::vector<Found> found{};
};

// A lease that was granted, and for how long.
struct Granted {
  LeaseId lease = 0;
  std::chrono::milliseconds ttl{};
};

// How a connection to an etcd is used; one thread, callbacks from its loop and never from within a
// call. What is under way when it is destroyed is not called back, and may yet be done.
class Etcd {
 public:
  virtual ~Etcd() = default;

  // Asks one member after the other until there is an answer, however long that takes. A lost
  // answer is asked for again: so the transaction is done once or more often, and a repetition may
  // arrive late, after the answer and after later transactions. Whoever changes something says in
  // the conditions what it follows from (SequencedWriter). Reads see all that was answered before.
  //   Aborted             etcd was restored from a snapshot: it has gone back behind what was
  //                       answered before; told once, and the transaction may be done
  //   ResourceExhausted   etcd's quota is used up; nothing was done
  //   InvalidArgument     etcd refuses such a transaction: it is larger than its limits
  //   PermissionDenied    the credentials do not suffice
  //   Internal            anything else that will not change
  virtual void Transact(Transaction transaction,
                        std::function<void(absl::StatusOr<Outcome>)> done) = 0;

  // As Transact, of a transaction that only reads and may have a large answer, and never Aborted.
  // Each member is waited for at least so many times as long as usual, kMostTimes at most; then
  //   DeadlineExceeded   none of them has answered in time, and less may have to be asked for
  static constexpr int kMostTimes = 8;
  virtual void Read(Transaction transaction, int times,
                    std::function<void(absl::StatusOr<Outcome>)> done) = 0;

  // One attempt each, as the lease may end meanwhile: Unavailable when there is no answer in time.
  // The attempt may arrive late all the same.
  virtual void Attempt(Transaction transaction,
                       std::function<void(absl::StatusOr<Outcome>)> done) = 0;
  virtual void Grant(std::chrono::milliseconds ttl,
                     std::function<void(absl::StatusOr<Granted>)> done) = 0;
  // How long the lease lasts from now on; NotFound when it has ended.
  virtual void KeepAlive(LeaseId lease,
                         std::function<void(absl::StatusOr<std::chrono::milliseconds>)> done) = 0;
  // How long the lease still lasts, by a clock that only goes forward; below zero: for so long etcd
  // has not ended it although its time is over. NotFound when it has ended.
  virtual void TimeToLive(LeaseId lease,
                          std::function<void(absl::StatusOr<std::chrono::milliseconds>)> done) = 0;
  // Ends the lease, and with it the keys that have it.
  virtual void Revoke(LeaseId lease, std::function<void(absl::Status)> done) = 0;

  // Calls `ended` once: when the key has been deleted after the revision (OK), or when that can no
  // longer be known (any error). A new one takes the place of the last.
  virtual void AwaitDeletion(const std::string& key, Revision after,
                             std::function<void(absl::Status)> ended) = 0;

  // Tells every change to keys of the range after the revision, in their order; those of one
  // revision perhaps in several pieces. Until it calls `ended`, once:
  //   Unavailable   the connection has broken. It may be watched again at once: the pause that
  //                 keeps this from going round and round is over
  //   OutOfRange    what came after the revision has been compacted, or etcd was restored and has
  //                 not come to the revision yet
  //   or as Transact
  // A new one takes the place of the last. Either callback may begin or end one.
  virtual void Watch(const Range& range, Revision after,
                     std::function<void(std::vector<Change>)> changed,
                     std::function<void(absl::Status)> ended) = 0;
  // Nothing more is told of what Watch has begun.
  virtual void EndWatch() = 0;

  // What only lists the past up to the revision may be forgotten. Nobody waits for it.
  virtual void Compact(Revision revision) = 0;
};

// Where an etcd is, and how it is spoken to.

// By what a daemon and an etcd know each other.
struct EtcdCredentials {
  // PEM. With an authority the connections are encrypted, and members have to have its certificate;
  // certificate and key are this daemon's (etcd's --client-cert-auth), or both empty.
  std::string authority{};
  std::string certificate{};
  std::string key{};
  // Of etcd's own users; empty: it has none.
  std::string user{};
  std::string password{};

  bool operator==(const EtcdCredentials&) const = default;
};

struct EtcdOptions {
  // "HOST:PORT" of its members.
  std::vector<std::string> members;
  EtcdCredentials credentials{};
  // Reads them again, as files are replaced while a daemon runs: asked from the loop before each
  // login and whenever a member does not answer. After an error those that were read last stay.
  // nullptr: they never change.
  std::function<absl::StatusOr<EtcdCredentials>()> reread{};
  // For one member to answer before the next is asked; about a lease half as long, as that needs no
  // disk and cannot wait. A transaction waits up to eight times as long where no member answers in
  // time, and a login up to 64 times.
  std::chrono::milliseconds patience = std::chrono::seconds(1);
};

// An etcd over gRPC.

// Asks one member after the other, beginning with the one that answered last. `trouble` hears why
// there is no answer, once a minute until there is one again. `io` must outlive it.
std::unique_ptr<Etcd> ConnectToEtcd(boost::asio::io_context& io, EtcdOptions options,
                                    std::function<void(const std::string& why)> trouble);

}  // namespace muster::rendezvous::etcd
