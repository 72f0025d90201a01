// The way from an etcd, over which answers take the longer the more of them there are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "test/rendezvous/simulation/scheduler.h"

namespace muster::rendezvous {

// What is under way gets its turns in equal parts, as streams of one connection do. Until it is
// told how fast it is, everything arrives at once.
class SlowLink {
 public:
  explicit SlowLink(Scheduler& scheduler) : scheduler_(scheduler) {}

  void Have(std::size_t bytes_per_second) { bytes_per_second_ = bytes_per_second; }
  bool is_slow() const { return bytes_per_second_ > 0; }

  // Calls `arrived` once all bytes are there. The number is for Drop.
  std::uint64_t Send(std::size_t bytes, std::function<void()> arrived) {
    under_way_.push_back({++last_, bytes, std::move(arrived)});
    if (!std::exchange(is_busy_, true)) SendPart();
    return last_;
  }
  // Nobody waits for it any more. False: it has arrived.
  bool Drop(std::uint64_t number) {
    return std::erase_if(under_way_, [number](const Answer& a) { return a.number == number; }) > 0;
  }

 private:
  struct Answer {
    std::uint64_t number = 0;
    std::size_t left = 0;
    std::function<void()> arrived;
  };

  void SendPart() {
    constexpr std::size_t kPart = 16 << 10;
    is_busy_ = !under_way_.empty();
    if (!is_busy_) return;
    Answer answer = std::move(under_way_.front());
    under_way_.pop_front();
    const std::size_t part = std::min(answer.left, kPart);
    answer.left -= part;
    if (answer.left > 0) {
      under_way_.push_back(std::move(answer));
    } else {
      scheduler_.After({}, std::move(answer.arrived));
    }
    scheduler_.After(std::chrono::microseconds(part * 1'000'000 / bytes_per_second_),
                     [this] { SendPart(); });
  }

  Scheduler& scheduler_;
  std::size_t bytes_per_second_ = 0;
  bool is_busy_ = false;
  std::uint64_t last_ = 0;
  std::deque<Answer> under_way_;
};

}  // namespace muster::rendezvous
