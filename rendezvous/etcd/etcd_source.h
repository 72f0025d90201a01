// A journal is read from etcd.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/lifetime.h"
#include "rendezvous/etcd/etcd.h"
#include "rendezvous/etcd/journal_keys.h"
#include "rendezvous/etcd/journal_source.h"
#include "rendezvous/etcd/sequenced_writer.h"

namespace muster::rendezvous::etcd {

// Reads for the leader whose fence it is, and for nobody else: Aborted when another leads. Other
// errors are Etcd::Transact's. The Etcd must outlive it.
class EtcdSource final : public JournalSource {
 public:
  EtcdSource(Etcd& etcd, Fence fence) : etcd_(etcd), fence_(std::move(fence)) {}

  void Look(std::vector<std::string> keys,
            std::function<void(absl::StatusOr<Values>)> done) override;
  void HandOver(Range range, std::function<absl::Status(const KeyValue&)> take,
                std::function<void(absl::Status)> done) override;
  // It is there when it has been done.
  void Expect(const std::vector<Operation>&) override {}

 private:
  void Read(std::vector<Operation> gets, std::function<void(absl::StatusOr<Outcome>)> done);

  Etcd& etcd_;
  const Fence fence_;
  PageSize page_size_;
  const base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous::etcd
