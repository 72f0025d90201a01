#include "trainer/comm/host/shm_all_reduce.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace muster::trainer {
namespace {

// The barrier's part of the segment, rounded up to a page.
std::size_t BarrierBytes(int members) {
  return (ShmBarrier::Bytes(members) + 4095) / 4096 * 4096;
}

}  // namespace

std::size_t ShmAllReduce::SegmentBytes(int members, std::size_t window_bytes) {
  return BarrierBytes(members) + static_cast<std::size_t>(members) * 2 * window_bytes;
}

ShmAllReduce::ShmAllReduce(ShmSegment segment, ShmBarrier::Options options)
    : member_(options.member),
      members_(static_cast<int>(options.ranks.size())),
      window_bytes_((segment.size() - BarrierBytes(members_)) / 2 /
                    static_cast<std::size_t>(members_)),
      segment_(std::move(segment)),
      barrier_(segment_.data(), std::move(options)) {
  // Any other size would lead to accesses beyond the segment.
  if (segment_.size() != SegmentBytes(members_, window_bytes_) || window_bytes_ % kLine != 0) {
    std::abort();
  }
}

std::byte* ShmAllReduce::Window(int member) const {
  const std::size_t index = static_cast<std::size_t>(member) * 2 + static_cast<std::size_t>(turn_);
  return segment_.data() + BarrierBytes(members_) + index * window_bytes_;
}

absl::Status ShmAllReduce::AllReduce(ElementType type, std::byte* data, std::size_t count,
                                     double scale, Waiting waiting) {
  if (members_ == 2) return AddUpBoth(type, data, count, scale, waiting);
  return ReduceTo(To::kAll, type, data, count, scale, waiting);
}

absl::Status ShmAllReduce::Reduce(ElementType type, std::byte* data, std::size_t count,
                                  double scale) {
  return ReduceTo(To::kFirst, type, data, count, scale, Waiting::kSleep);
}

absl::Status ShmAllReduce::AddUpBoth(ElementType type, std::byte* data, std::size_t count,
                                     double scale, Waiting waiting) {
  const std::size_t size = ElementBytes(type);
  const std::size_t bytes = count * size;
  const std::byte* sources[2] = {};
  for (std::size_t done = 0; done < bytes; done += window_bytes_) {
    std::byte* const piece = data + done;
    const std::size_t length = std::min(window_bytes_, bytes - done);
    std::memcpy(Window(member_), piece, length);
    if (absl::Status status = barrier_.Arrive(waiting); !status.ok()) return status;
    sources[member_] = piece;
    sources[1 - member_] = Window(1 - member_);
    ScaledSum(type, sources, length / size, scale, piece);
    moved_bytes_ += static_cast<std::int64_t>(length);
    turn_ = 1 - turn_;
  }
  return absl::OkStatus();
}

absl::Status ShmAllReduce::ReduceTo(To to, ElementType type, std::byte* data, std::size_t count,
                                    double scale, Waiting waiting) {
  const std::size_t size = ElementBytes(type);
  const std::size_t bytes = count * size;
  for (std::size_t done = 0; done < bytes; done += window_bytes_) {
    std::byte* const piece = data + done;
    const std::size_t length = std::min(window_bytes_, bytes - done);
    // Whole cache lines, which are whole elements.
    const std::size_t all_lines = (length + kLine - 1) / kLine;
    const auto members = static_cast<std::size_t>(members_);
    const std::size_t share = (all_lines + members - 1) / members * kLine;
    const auto begin = [&](int member) {
      return std::min(length, share * static_cast<std::size_t>(member));
    };
    const auto part = [&](int member) { return begin(member + 1) - begin(member); };
    const auto copy = [&](std::byte* into, const std::byte* from, int member) {
      if (part(member) > 0) {
        std::memcpy(into + begin(member), from + begin(member), part(member));
      }
    };

    std::byte* const mine = Window(member_);
    for (int member = 0; member < members_; ++member) {
      if (member != member_) copy(mine, piece, member);
    }
    if (absl::Status status = barrier_.Arrive(waiting); !status.ok()) return status;

    std::vector<const std::byte*> sources;
    for (int member = 0; member < members_; ++member) {
      sources.push_back((member == member_ ? piece : Window(member)) + begin(member_));
    }
    ScaledSum(type, sources, part(member_) / size, scale, piece + begin(member_));
    copy(mine, piece, member_);
    moved_bytes_ += static_cast<std::int64_t>(part(member_)) * (members_ - 1);
    if (absl::Status status = barrier_.Arrive(waiting); !status.ok()) return status;

    for (int member = 0; member < members_; ++member) {
      if (member == member_ || (to == To::kFirst && member_ != 0)) continue;
      copy(piece, Window(member), member);
      moved_bytes_ += static_cast<std::int64_t>(part(member));
    }
    turn_ = 1 - turn_;
  }
  return absl::OkStatus();
}

absl::Status ShmAllReduce::ReduceScatter(ElementType type, const std::byte* whole,
                                         std::size_t count, std::byte* mine) {
  const auto members = static_cast<std::size_t>(members_);
  const std::size_t size = ElementBytes(type);
  const std::size_t part = count / members * size;
  // A window has a slot of whole cache lines for each member's part.
  const std::size_t slot = window_bytes_ / members / kLine * kLine;
  const auto own = static_cast<std::size_t>(member_);
  std::vector<const std::byte*> sources(members);
  for (std::size_t done = 0; done < part; done += slot) {
    const std::size_t length = std::min(slot, part - done);
    for (std::size_t member = 0; member < members; ++member) {
      if (member == own) continue;
      std::memcpy(Window(member_) + member * slot, whole + member * part + done, length);
    }
    if (absl::Status status = barrier_.Arrive(); !status.ok()) return status;
    for (std::size_t member = 0; member < members; ++member) {
      sources[member] =
          member == own ? whole + own * part + done : Window(static_cast<int>(member)) + own * slot;
    }
    ScaledSum(type, sources, length / size, 1.0, mine + done);
    moved_bytes_ += static_cast<std::int64_t>(length * (members - 1));
    turn_ = 1 - turn_;
  }
  return absl::OkStatus();
}

absl::Status ShmAllReduce::AllGather(const std::byte* mine, std::size_t bytes, std::byte* whole) {
  for (std::size_t done = 0; done < bytes; done += window_bytes_) {
    const std::size_t length = std::min(window_bytes_, bytes - done);
    std::memcpy(Window(member_), mine + done, length);
    if (absl::Status status = barrier_.Arrive(); !status.ok()) return status;
    for (int member = 0; member < members_; ++member) {
      std::byte* const into = whole + static_cast<std::size_t>(member) * bytes + done;
      const std::byte* const from = member == member_ ? mine + done : Window(member);
      if (into != from) std::memcpy(into, from, length);
    }
    moved_bytes_ += static_cast<std::int64_t>(length) * (members_ - 1);
    turn_ = 1 - turn_;
  }
  return absl::OkStatus();
}

absl::Status ShmAllReduce::Broadcast(std::byte* data, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes; done += window_bytes_) {
    const std::size_t length = std::min(window_bytes_, bytes - done);
    if (member_ == 0) std::memcpy(Window(0), data + done, length);
    if (absl::Status status = barrier_.Arrive(); !status.ok()) return status;
    if (member_ != 0) {
      std::memcpy(data + done, Window(0), length);
      moved_bytes_ += static_cast<std::int64_t>(length);
    }
    turn_ = 1 - turn_;
  }
  return absl::OkStatus();
}

}  // namespace muster::trainer
