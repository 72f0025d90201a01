// Memory that several stores have together.
#pragma once

#include <cstddef>
#include <utility>

namespace muster::rendezvous {

// How many bytes there are in all, and how many of them are taken. Must outlive its shares. Not
// thread-safe.
class ByteBudget {
 public:
  // What is taken of this one is taken of `whole` as well, unless that is null.
  explicit ByteBudget(std::size_t most, ByteBudget* whole = nullptr) : most_(most), whole_(whole) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  std::size_t most() const { return most_; }
  std::size_t taken() const { return taken_; }

  // What one store has of it; given back when the share ends. Without a budget nothing is counted.
  class Share {
   public:
    explicit Share(ByteBudget* budget) : budget_(budget) {}
    ~Share() { Take(0); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // The store has `bytes` from now on.
    void Take(std::size_t bytes) {
      const std::size_t before = std::exchange(bytes_, bytes);
      for (ByteBudget* each = budget_; each != nullptr; each = each->whole_) {
        each->taken_ += bytes - before;
      }
    }
    // The budget that would not suffice if this store had `bytes`, and more than before; null: all
    // do.
    const ByteBudget* ExceededBy(std::size_t bytes) const {
      if (bytes <= bytes_) return nullptr;
      for (const ByteBudget* each = budget_; each != nullptr; each = each->whole_) {
        if (each->taken_ - bytes_ + bytes > each->most_) return each;
      }
      return nullptr;
    }
    std::size_t bytes() const { return bytes_; }

   private:
    ByteBudget* const budget_;
    std::size_t bytes_ = 0;
  };

 private:
  const std::size_t most_;
  ByteBudget* const whole_;
  std::size_t taken_ = 0;
};

}  // namespace muster::rendezvous
