// Writes large files without filling the kernel's page cache.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

namespace muster::trainer {

// Writes to an open file in large pieces that go past the page cache (O_DIRECT), where file and
// file system allow that. A checkpoint written so costs a fifth of the processor time, which a
// training beside it would miss, and does not push out of memory what others have read. A file of
// less than a piece is written as usual. Not thread-safe.
class LargeOutput {
 public:
  // Writes to `fd` from where it stands, which is 0. The caller closes it, and calls nothing else
  // of it until Finish().
  explicit LargeOutput(int fd) : fd_(fd) {}
  LargeOutput(const LargeOutput&) = delete;
  LargeOutput& operator=(const LargeOutput&) = delete;

  // False, with errno, when writing fails; only destroy the object then.
  bool Append(std::string_view bytes);
  // Writes what is left, after which the file is complete, though not synced. Call it once, last.
  bool Finish();

 private:
  struct Free {
    void operator()(std::byte* bytes) const;
  };

  bool WritePiece();

  const int fd_;
  std::unique_ptr<std::byte, Free>
      piece_;  // aligned as O_DIRECT needs it; null before the first byte
  std::size_t filled_ = 0;
  bool began_ = false;   // a piece has been written
  bool direct_ = false;  // O_DIRECT is set
};

}  // namespace muster::trainer
