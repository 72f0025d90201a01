// A set of small numbers that is cheap to copy and compare.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace muster::linearizability {

// Holds numbers from 0 to `size` - 1. Only compare sets of the same size.
class Bits {
 public:
  explicit Bits(std::size_t size) : words_((size + 63) / 64) {}

  void Add(std::size_t i) { words_[i / 64] |= Mask(i); }
  void Remove(std::size_t i) { words_[i / 64] &= ~Mask(i); }
  bool Has(std::size_t i) const { return (words_[i / 64] & Mask(i)) != 0; }
  bool IsPartOf(const Bits& other) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if ((words_[i] & ~other.words_[i]) != 0) return false;
    }
    return true;
  }
  // Sets of the same size have the same number of bytes.
  std::string Bytes() const {
    return {reinterpret_cast<const char*>(words_.data()), words_.size() * sizeof(std::uint64_t)};
  }

 private:
  static std::uint64_t Mask(std::size_t i) { return std::uint64_t{1} << (i % 64); }

  std::vector<std::uint64_t> words_;
};

}  // namespace muster::linearizability
