// Which file system a path is on, found without touching it.
#pragma once

#include <string>

namespace muster::launcher {

struct Mount {
  std::string point;  // "/mnt/data"; empty: it is not known
  std::string type;   // "nfs4", "fuse.sshfs"
};

// `path` is absolute and has no links in it; `mountinfo` is the text of /proc/self/mountinfo.
Mount MountOf(const std::string& path, const std::string& mountinfo);

}  // namespace muster::launcher
