// A journal is read from etcd.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/lifetime.h"
#include "rendezvous/etcd/etcd.h"
#include "rendezvous/etcd/journal_keys.h"
#include "rendezvous/etcd/journal_source.h"
#include "rendezvous/etcd/page_reader.h"
#include "rendezvous/etcd/sequenced_writer.h"

namespace muster::rendezvous::etcd {

// Reads for the leader whose fence it is, and for nobody else: Aborted when another leads. Other
// errors are Etcd::Transact's. The Etcd must outlive it, and so must the PageReader, which is that
// of all sources at a time.
class EtcdSource final : public JournalSource {
 public:
  EtcdSource(Etcd& etcd, PageReader& pages, Fence fence)
      : etcd_(etcd), pages_(pages), fence_(std::move(fence)) {}

  void Look(std::vector<std::string> keys,
            std::function<void(absl::StatusOr<Values>)> done) override;
  void HandOver(Range range, std::function<absl::Status(const KeyValue&)> take,
                std::function<void(absl::Status)> done) override;
  // It is there when it has been done.
  void Expect(const std::vector<Operation>&) override {}

 private:
  // Goes on with the rest of a range, from which pages of that size were read before.
  void HandOverRest(Range range, std::shared_ptr<PageSize> size,
                    std::function<absl::Status(const KeyValue&)> take,
                    std::function<void(absl::Status)> done);
  // Hands on what is found, if it is of this leader and as much as was asked for.
  std::function<void(absl::StatusOr<Outcome>)> Checked(
      std::size_t asked, std::function<void(absl::StatusOr<Outcome>)> done) const;

  Etcd& etcd_;
  PageReader& pages_;
  const Fence fence_;
  const base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous::etcd
