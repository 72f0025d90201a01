// Keeps two runs from writing into one directory.
#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "base/unique_fd.h"

namespace muster::trainer {

// A lock of this process on a directory, which ends with the process at the latest, however that
// ends. It is a POSIX record lock on the file `.lock` in it, which says in one line who has it, and
// works over NFS where that has locks.
class DirectoryLock {
 public:
  // Takes the lock of `directory`. Another process of this machine that has it may be on its way
  // out, so it is given 5 s, before kInvalidArgument says in one sentence which process that is. A
  // lock that another machine has is no obstacle, as a server may hold it for minutes after that
  // machine died: then held() is false and warning() says so. Where there are no locks, held() is
  // false, too. Kept until the object, or the process, ends.
  static absl::StatusOr<DirectoryLock> Take(const std::string& directory);

  bool held() const { return file_.valid(); }
  // A sentence for the user; empty if there is nothing to say.
  const std::string& warning() const { return warning_; }

 private:
  base::UniqueFd file_;
  std::string warning_;
};

}  // namespace muster::trainer
