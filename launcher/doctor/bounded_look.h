// A look at something that may never answer, such as a file system whose server is gone: taken by a
// child, which is left alone when its time is over.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace muster::launcher {

// What a child has said, one string after the other, without the byte 0.
struct Sight {
  std::vector<std::string> said;
  // It has come to its end; false: it was killed when its time was over, or has died before.
  bool is_whole = false;
  // Its time was over.
  bool is_late = false;
};

using Say = std::function<void(const std::string&)>;

// Calls `look` in a child of this process, for `limit` at most. The child has this process's
// memory, and none of its descriptors. Where it does not even die, as in a system call that nothing
// interrupts, it is not waited for. Where no child can be made the look is taken here, and takes as
// long as it takes. Only for processes with a single thread.
Sight LookWithin(std::chrono::milliseconds limit, const std::function<void(const Say&)>& look);

}  // namespace muster::launcher
