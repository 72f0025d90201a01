// Low-numbered descriptors for what a child gets as its descriptors 0, 1 and 2.
#pragma once

#include <array>
#include <optional>

#include "base/unique_fd.h"

namespace muster::worker {

// A child needs a copy of our descriptors up to the highest number that it is to use. The agent has
// two or more for each worker. So without slots, which are taken before those, each of a thousand
// workers would begin by copying and closing all descriptors that belong to the workers before it.
class StdioSlots {
 public:
  // Takes the lowest free numbers; nullopt when there are none left.
  static std::optional<StdioSlots> Take() {
    StdioSlots slots;
    slots.nothing_.reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
    for (base::UniqueFd& slot : slots.slots_) {
      slot = base::DuplicateAboveStdio(slots.nothing_.get());
      if (!slot.valid()) return std::nullopt;
    }
    return slots;
  }

  // A second descriptor for what `fd` is open on, in the slot of `target` (0, 1 or 2), until
  // Empty(). -1, with errno set, on failure.
  int Fill(int target, int fd) const {
    return ::dup3(fd, slots_[static_cast<std::size_t>(target)].get(), O_CLOEXEC);
  }

  // From now on the slots hold nothing open.
  void Empty() const {
    for (const base::UniqueFd& slot : slots_) ::dup3(nothing_.get(), slot.get(), O_CLOEXEC);
  }

 private:
  StdioSlots() = default;

  base::UniqueFd nothing_;
  std::array<base::UniqueFd, 3> slots_;
};

}  // namespace muster::worker
