// Paths on a machine that has other users: whether one of them can decide where a path leads.
//
// A path is walked part by part, each part looked at by the descriptor through which the walk goes
// on, so that nothing can be swapped between the look and the use. "Ours" is what belongs to this
// user or to root. The rule:
//
//   - A symbolic link is followed if it is ours and lies in a directory of ours that others cannot
//     write to, or only under a sticky bit, as /tmp: root's /var/run and one's own links in one's
//     home are followed, and what somebody else has placed, or could have swapped, is not.
//   - In a directory that every user can write to, only what is ours is taken: anybody can have
//     been there first, under the name that we were going to use.
//   - A directory of somebody else's is entered otherwise, as it is the user who has named it.
//   - Where a path is to be ours alone (PathOptions), it is not; nor is a directory in which every
//     user can rename what others have made (mode 0777 without a sticky bit).
//
// That a group may write somewhere is somebody's decision, such as Kubernetes' for its volumes. In
// a user namespace, users whom it does not know count as root, who is among them. The links in
// /proc are the kernel's. A relative path begins at the working directory, however that was
// reached.
//
// Everything here may wait for a disk or a network file system. An error's message is a cause, to
// be put after attempt and object (base/failure.h): "Permission denied", or, where the rule is
// broken (kPermissionDenied), which part is at fault and what to do. kNotFound: there is no such
// file, or a directory on the way is missing. kFailedPrecondition: anything else.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace muster::base {

struct PathOptions {
  // Nobody but this user and root may be able to change what the path leads to.
  bool ours_alone = false;
  // Directories that are missing are made, with this mode (less the umask); nullopt: they must be
  // there.
  std::optional<mode_t> make = std::nullopt;
};

// Where the last part of a path is, or would be: for openat(), mkdirat() and their like, which must
// not follow a link there. The directory is open for nothing else (O_PATH).
struct Spot {
  UniqueFd directory;
  std::string name;  // without a slash; "." for "/"
};

absl::StatusOr<Spot> FindSpot(const std::string& path, const PathOptions& options = {});

// The directory itself, open for what *at() functions do with it (O_PATH).
absl::StatusOr<UniqueFd> OpenDirectory(const std::string& path, const PathOptions& options = {});

// As open(), close-on-exec. With O_NOFOLLOW a link at the end is refused, else it is followed by
// the rule. What is opened is looked at afterwards: O_TRUNC would come too early, and a FIFO is
// waited for without O_NONBLOCK. `mode` is for O_CREAT.
absl::StatusOr<UniqueFd> OpenFile(const std::string& path, int flags, mode_t mode = 0,
                                  const PathOptions& options = {});

// Whether nobody but this user and root can change what belongs to the user with this id.
bool IsOurs(uid_t owner);

}  // namespace muster::base
