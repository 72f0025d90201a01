// Whether a file is still the one that was read.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace muster::rendezvous {

// Differs when the name leads to another file, or the file has been written to or given to others.
struct FileStamp {
  dev_t device = 0;
  ino_t number = 0;
  off_t size = -1;
  std::int64_t changed_ns = 0;

  bool operator==(const FileStamp&) const = default;
};

// Of nothing, if there is no such file.
inline FileStamp StampOf(const std::string& path) {
  struct stat file = {};
  if (::stat(path.c_str(), &file) != 0) return {};
  return {file.st_dev, file.st_ino, file.st_size,
          file.st_ctim.tv_sec * std::int64_t{1'000'000'000} + file.st_ctim.tv_nsec};
}

}  // namespace muster::rendezvous
