// Memory that several stores have together.
#pragma once

#include <cstddef>
#include <utility>

namespace muster::rendezvous {

// How many bytes there are in all, and how many of them are taken. Must outlive its shares. Not
// thread-safe.
class ByteBudget {
 public:
  explicit ByteBudget(std::size_t most) : most_(most) {}
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
      if (budget_ != nullptr) budget_->taken_ += bytes - before;
    }
    // What all would have if this store had `bytes`; 0 without a budget.
    std::size_t TakenWith(std::size_t bytes) const {
      return budget_ == nullptr ? 0 : budget_->taken_ - bytes_ + bytes;
    }
    // That would be more than before, and more than there is.
    bool WouldExceed(std::size_t bytes) const {
      return budget_ != nullptr && bytes > bytes_ && TakenWith(bytes) > budget_->most_;
    }
    std::size_t most() const { return budget_ == nullptr ? 0 : budget_->most_; }

   private:
    ByteBudget* const budget_;
    std::size_t bytes_ = 0;
  };

 private:
  const std::size_t most_;
  std::size_t taken_ = 0;
};

}  // namespace muster::rendezvous
