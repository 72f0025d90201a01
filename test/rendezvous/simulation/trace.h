// The trace of a simulation: a hash of all its lines, and the last of them for error messages.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <string>

namespace muster::rendezvous {

class Trace {
 public:
  // If `copy` is not null, it also receives every line; it must outlive the trace.
  explicit Trace(std::ostream* copy) : copy_(copy) {}

  void Add(std::string line);

  std::uint64_t hash() const { return hash_; }
  // The last lines, oldest first.
  std::string Tail() const;

 private:
  static constexpr std::size_t kKept = 60;

  std::ostream* const copy_;
  std::uint64_t hash_ = 14695981039346656037u;  // FNV-1a's offset basis
  std::size_t lines_ = 0;
  std::array<std::string, kKept> kept_;  // a ring
};

}  // namespace muster::rendezvous
