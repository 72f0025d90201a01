// A piece of memory that the processes of a host share.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace muster::trainer {

// Memory in /dev/shm that one process makes and others map. It never has a name there: it is made
// with O_TMPFILE, and others reach it through the maker's descriptor in /proc. So there is nothing
// to guess, and nothing to leave behind: the kernel frees it with the last process that has it,
// however that ends. Move-only; the mapping goes with the object.
class ShmSegment {
 public:
  // A new one of `bytes`, all 0, readable and writable by this user alone. The memory is really
  // there, so that no access to it can end in SIGBUS. kUnavailable with one sentence when /dev/shm
  // has no room for it, or there is no /dev/shm.
  static absl::StatusOr<ShmSegment> Create(std::size_t bytes);

  // Maps the segment that another process of this host has made, by its handle(). kUnavailable when
  // the maker has withdrawn it or is gone, or the handle is that of another segment.
  static absl::StatusOr<ShmSegment> Open(const std::string& handle);

  // Bytes that are free in /dev/shm; 0 when there is none.
  static std::size_t Free();

  ShmSegment(ShmSegment&& other) noexcept;
  ShmSegment& operator=(ShmSegment&& other) noexcept;
  ~ShmSegment();

  // What others need to open it: the maker's pid and descriptor, the size, and a secret that the
  // segment holds as well. One line of text.
  const std::string& handle() const { return handle_; }
  // After this nobody can open it any more; those who have may keep it. For the maker, once all
  // others have opened it.
  void Withdraw();

  // Past the segment's own first bytes, and aligned to a page.
  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  ShmSegment(int fd, std::byte* mapping, std::size_t size, std::string handle);

  int fd_ = -1;  // the maker's, until it withdraws the segment
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::string handle_;
};

}  // namespace muster::trainer
