// A journal is read from the memory of a daemon that stood by.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/lifetime.h"
#include "rendezvous/etcd/journal_source.h"

namespace muster::rendezvous::etcd {

// What was in etcd when this daemon became the leader (JournalMirror), and what it has done since.
// What was handed over is gone, so that nothing is there twice. Several journals may be opened from
// it beside one another, as none has keys of another's, and each of them once.
class MemorySource final : public JournalSource {
 public:
  using Keys = std::map<std::string, std::string>;
  // Calls a function in a later turn of the loop, or never when that has ended.
  using Later = std::function<void(std::function<void()>)>;

  MemorySource(Keys keys, Later later) : keys_(std::move(keys)), later_(std::move(later)) {}

  void Look(std::vector<std::string> keys,
            std::function<void(absl::StatusOr<Values>)> done) override;
  void HandOver(Range range, std::function<absl::Status(const KeyValue&)> take,
                std::function<void(absl::Status)> done) override;
  void Expect(const std::vector<Operation>& operations) override;

  const Keys& keys() const { return keys_; }

 private:
  Keys keys_;
  const Later later_;
  const base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous::etcd
