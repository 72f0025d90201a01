// Memory shared by the processes of a host.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/comm/host/transport.h"

namespace muster::trainer {

// Memory in /dev/shm that one process creates and others map. It never has a name: it is created
// with O_TMPFILE, and others open it through the creator's descriptor in /proc. So no name can be
// guessed, and nothing is left behind: the kernel frees it when the last process that maps it ends,
// for whatever reason. Move-only; the destructor unmaps it.
class ShmSegment {
 public:
  // Creates a zeroed segment of `bytes`, accessible only to this user. The memory is actually
  // allocated, so that no access can raise SIGBUS. kUnavailable with one sentence when /dev/shm is
  // full or does not exist.
  static absl::StatusOr<ShmSegment> Create(std::size_t bytes);

  // Maps the segment that another process on this host created, given its handle(). kUnavailable
  // when the creator has withdrawn it or is gone, or when the handle is malformed or no longer
  // refers to it.
  static absl::StatusOr<ShmSegment> Open(const std::string& handle);

  // Free bytes in /dev/shm; 0 if it does not exist.
  static std::size_t Free();

  ShmSegment(ShmSegment&& other) noexcept;
  ShmSegment& operator=(ShmSegment&& other) noexcept;
  ~ShmSegment();

  // What others need to open the segment: the creator's pid and descriptor, the size, and a secret
  // that is also stored in the segment. One line of text.
  const std::string& handle() const { return handle_; }
  // Prevents further Open() calls; existing mappings stay. The creator calls it once all others
  // have opened the segment. No effect in other processes.
  void Withdraw();

  // The usable memory, page-aligned.
  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  ShmSegment(int fd, std::byte* mapping, std::size_t size, std::string handle);

  int fd_ = -1;  // only in the creator, until Withdraw()
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::string handle_;
};

// Creates memory that the ranks of a host share.

// Sends a short text from each rank to all ranks; returns the texts by rank.
using GatherText = std::function<std::vector<std::string>(const std::string& mine)>;

// On each host, the leader creates a zeroed segment of its `bytes` and the other ranks open it;
// then the segment is withdrawn, so that no other process can open it. All ranks call it together.
// kUnavailable on every rank, with the message of the first one that failed, whose rank in the
// world is `members`[its rank in `layout`].
absl::StatusOr<ShmSegment> MakeSharedSegment(const HostLayout& layout,
                                             const std::vector<int>& members, std::size_t bytes,
                                             const GatherText& gather);

}  // namespace muster::trainer
