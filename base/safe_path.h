// Opens paths on a machine that has other users, without letting them redirect a path.
//
// A path is walked part by part through directory descriptors, and each part is checked through the
// descriptor that the walk continues with, so that nothing can be swapped between check and use.
// "Ours" means owned by this user or by root. The rules:
//
//   - A symbolic link is followed if it is ours and lies in a directory of ours that others cannot
//     write to, or only under a sticky bit, as /tmp. So root's /var/run and the user's own links in
//     their home are followed; links that another user placed or could have swapped are not.
//   - In a directory that every user can write to, only files that are ours are opened: anyone
//     could have created a file there under the name that we were going to use.
//   - Other directories of other users are entered, as the path's author has named them.
//   - With PathOptions::ours_alone they are not; nor is a directory in which every user can rename
//     the files of others (mode 0777 without a sticky bit).
//
// Write permission of a group is accepted as deliberate, such as Kubernetes' for its volumes. In a
// user namespace, unmapped users count as root, as root itself may be one of them. Links in /proc
// are resolved by the kernel. A relative path begins at the working directory; the way to that is
// not checked.
//
// Every function here may block on a disk or a network file system. An error's message is a cause,
// to follow attempt and object (base/failure.h): "Permission denied", or, where a rule is broken
// (kPermissionDenied), the part at fault and what to do. kNotFound: the file does not exist, or a
// directory on the way is missing. kFailedPrecondition: anything else.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "base/unique_fd.h"

namespace muster::base {

struct PathOptions {
  // Only this user and root may be able to change what the path leads to.
  bool ours_alone = false;
  // Mode, less the umask, with which missing directories are created; nullopt: they must exist.
  std::optional<mode_t> make = std::nullopt;
};

// The directory of a path's last part, which need not exist. For openat(), mkdirat() and the like,
// which must not follow a link there. The descriptor is O_PATH.
struct Spot {
  UniqueFd directory;
  std::string name;  // without a slash; "." for "/"
};

absl::StatusOr<Spot> FindSpot(const std::string& path, const PathOptions& options = {});

// The directory itself, as an O_PATH descriptor for the *at() functions.
absl::StatusOr<UniqueFd> OpenDirectory(const std::string& path, const PathOptions& options = {});

// As open(), close-on-exec. With O_NOFOLLOW a link at the end is refused, else it is followed by
// the rules above. The file is checked after it is opened, so O_TRUNC would truncate too early, and
// a FIFO blocks without O_NONBLOCK. `mode` is for O_CREAT.
absl::StatusOr<UniqueFd> OpenFile(const std::string& path, int flags, mode_t mode = 0,
                                  const PathOptions& options = {});

// Whether `owner` is this user, root, or not mapped in this user namespace.
bool IsOurs(uid_t owner);

// Where processes of one user on one machine find one another: directories that need no home
// directory, and that only this user can write to.

struct UserPlace {
  std::string chosen;   // MUSTER_RUNS_DIR; empty: not set
  std::string runtime;  // XDG_RUNTIME_DIR; empty: not set
  std::vector<std::string> temps = {"/tmp", "/var/tmp"};

  bool operator==(const UserPlace&) const = default;
};

// Reads the variables; `variable` returns the value of one, or "".
UserPlace UserPlaceOf(absl::FunctionRef<std::string(const char*)> variable);

// Candidate directories; a process uses the first one that works. `chosen` alone, if set. Else
// $XDG_RUNTIME_DIR/muster, /tmp/muster-UID-RANDOM, the same in /var/tmp, and /run/user/UID/muster.
// Readers search all of them, because a batch job often lacks the XDG_RUNTIME_DIR that its user's
// terminal has.
//
// The random part keeps other users from taking the name first. A directory in /tmp is found by its
// prefix and owner: all that belong to this user and that no other user can write to are listed, or
// one new name if there are none. Last comes /tmp/muster-UID, if it exists: runs of Muster before
// 0.5 are there.
//
// Reads /tmp, which may have thousands of entries; call it only when needed.
std::vector<std::string> UserFolders(const UserPlace& place);

// As above, for something that must exist only once: processes that start together all try the same
// name first, /tmp/muster-UID-0, which UserFolders finds as well. If another user has taken it, the
// other directories follow.
std::vector<std::string> FoldersForOne(const UserPlace& place);

}  // namespace muster::base
