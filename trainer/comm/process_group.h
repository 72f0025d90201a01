// The group of all ranks of a job, with its collective operations.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include "absl/status/statusor.h"

#include "trainer/comm/comm.h"
#include "trainer/comm/flight_recorder.h"
#include "trainer/comm/host_layout.h"
#include "trainer/worker/environment.h"

namespace c10d {
class ProcessGroup;
}

namespace muster::trainer {

// A c10d process group and the store through which it was formed. All ranks must call its methods
// in the same order, from one thread each. Methods throw what c10d throws when a peer is lost or
// the timeout expires. After that the group cannot be used, and its destructor may block: exit
// without destroying it.
class ProcessGroup {
 public:
  // Meets the other ranks at the TCPStore at env.master_addr:env.master_port, which rank 0 serves
  // unless the launcher does, and connects to each rank. Blocks until all have joined, for at most
  // `timeout`, which also limits each later operation. A world of 1 uses no network. With NCCL,
  // makes the rank's GPU current first, so that nothing is allocated on another rank's.
  // kInvalidArgument when NCCL is picked but not available, kUnavailable when the ranks cannot meet
  // or when shared memory is requested but not available. If another rank calls TellUnfit, returns
  // that rank's failure at once.
  static absl::StatusOr<std::unique_ptr<ProcessGroup>> Join(const Environment& env, Comm comm,
                                                            std::chrono::milliseconds timeout);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::chrono::milliseconds timeout() const { return timeout_; }
  // The transport (kGloo, kNccl or kShm), and the device on which tensors passed to the group must
  // be.
  Comm comm() const { return choice_.comm; }
  const at::Device& device() const { return device_; }
  // The transport and the reason for it, for the start-up line: "shared memory: 4 ranks on one
  // host".
  const std::string& why_comm() const { return choice_.why; }
  // Which ranks share a host. Not determined with NCCL: every rank then has a host of its own.
  const HostLayout& layout() const { return layout_; }

  // The element-wise sums of `values` over all ranks. Every rank must pass the same number of
  // values.
  std::vector<double> Sum(const std::vector<double>& values);

  // Every rank's `mine`, by rank. Each is cut at `most` bytes, which must be the same on all ranks,
  // and at the first zero byte.
  std::vector<std::string> Gather(const std::string& mine, std::size_t most);

  // Returns once every rank has called it.
  void Barrier();

  // For error messages: in which operation each rank of this host is (see ExplainFlights). Empty
  // when no rank is in one, and when they are not recorded. Thread-safe.
  std::string WhereRanksAre() const;
  // Records the operations of this rank; null with NCCL, and when a host cannot share memory.
  FlightRecorder* recorder() { return recorder_.get(); }

  // The underlying c10d group, for code built on top of it. It uses Gloo with kGloo and kShm. Valid
  // as long as this object.
  const c10::intrusive_ptr<c10d::ProcessGroup>& group() const;

  // Creates a Gloo group of `ranks` members, which meet in the store under `name`; use a new name
  // for each group. Only the members call this. `place` is this rank's index among them. Throws
  // what c10d throws.
  c10::intrusive_ptr<c10d::ProcessGroup> MakeGlooGroup(const std::string& name, int place,
                                                       int ranks);

 private:
  struct Joined;  // the c10d objects, defined in the .cc
  ProcessGroup(const Environment& env, std::chrono::milliseconds timeout, const at::Device& device,
               std::unique_ptr<Joined> joined);
  // Determines the layout of the ranks and picks the transport.
  absl::StatusOr<CommChoice> Choose(Comm asked, bool nccl);

  const int rank_;
  const int size_;
  const std::chrono::milliseconds timeout_;
  const at::Device device_;
  std::unique_ptr<FlightRecorder> recorder_;  // the group's threads write there until they end
  const std::unique_ptr<Joined> joined_;

  HostLayout layout_;
  CommChoice choice_;
};

}  // namespace muster::trainer
