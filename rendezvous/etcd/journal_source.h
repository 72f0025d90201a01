// What a journal in etcd is read from when it is opened.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/etcd/etcd.h"

namespace muster::rendezvous::etcd {

// Etcd itself (EtcdSource), or the memory of a daemon that stood by (MemorySource). Nobody changes
// what it holds but the leader that opens the journal. One call at a time for each journal; a
// callback comes from the loop or from within the call, and may destroy the journal that called,
// but not the source.
class JournalSource {
 public:
  virtual ~JournalSource() = default;

  // The value of each of the keys; nullopt: there is no such key.
  using Values = std::vector<std::optional<std::string>>;
  virtual void Look(std::vector<std::string> keys,
                    std::function<void(absl::StatusOr<Values>)> done) = 0;

  // Hands over everything in the range, by key, until `take` returns an error; then calls `done`,
  // with that error, one of reading, or OK. What has been handed over may be gone from the source.
  virtual void HandOver(Range range, std::function<absl::Status(const KeyValue&)> take,
                        std::function<void(absl::Status)> done) = 0;

  // Whoever opens the journal has these operations done in etcd before the next call.
  virtual void Expect(const std::vector<Operation>& operations) = 0;
};

}  // namespace muster::rendezvous::etcd
