#include "trainer/io/directory_lock.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster::trainer {
namespace {

constexpr std::chrono::seconds kTimeToEnd(5);

// Tells this boot of this machine from all others, also from containers on it.
std::string ThisMachine() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
}

// 0, or errno. `command` is F_SETLK, or F_SETLKW to wait.
int Lock(int fd, int command) {
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  int error = 0;
  do {
    error = fcntl(fd, command, &whole) == 0 ? 0 : errno;
  } while (error == EINTR);
  return error;
}

// As Lock() that waits, but for a limited time: EAGAIN after it. Then somebody still waits, and
// `fd` has to stay open.
int LockSoon(int fd) {
  auto result = std::make_shared<std::promise<int>>();
  std::future<int> locked = result->get_future();
  std::thread([fd, result] { result->set_value(Lock(fd, F_SETLKW)); }).detach();
  return locked.wait_for(kTimeToEnd) == std::future_status::ready ? locked.get() : EAGAIN;
}

// Who has a lock: what is in its file.
struct Holder {
  std::string pid = "unknown";
  std::string host = "unknown";
  std::string machine;
};

Holder ReadHolder(int fd) {
  char text[512] = {};
  const ssize_t count = pread(fd, text, sizeof(text) - 1, 0);
  text[std::max<ssize_t>(count, 0)] = '\0';
  const std::vector<std::string> words = absl::StrSplit(text, absl::ByAnyChar(" \n"));
  if (words.size() < 3) return {};
  return {words[0], words[1], words[2]};
}

// What cannot be written is only missing from another run's message.
void WriteHolder(int fd) {
  const std::string text = absl::StrCat(getpid(), " ", HostName(), " ", ThisMachine(), "\n");
  if (ftruncate(fd, 0) == 0) static_cast<void>(!pwrite(fd, text.data(), text.size(), 0));
}

}  // namespace

absl::StatusOr<DirectoryLock> DirectoryLock::Take(const std::string& directory) {
  DirectoryLock lock;
  const std::string path = absl::StrCat(directory, "/.lock");
  base::UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file.valid()) return lock;
  int error = Lock(file.get(), F_SETLK);
  if (error == EAGAIN || error == EACCES) {
    const Holder holder = ReadHolder(file.get());
    if (!holder.machine.empty() && holder.machine != ThisMachine()) {
      lock.warning_ =
          absl::StrCat(directory, " is also in use by process ", holder.pid, " on host ",
                       holder.host, ", unless that host is gone; two runs need a directory each");
      return lock;
    }
    error = LockSoon(file.get());
    if (error == EAGAIN) {
      static_cast<void>(file.release());
      return absl::InvalidArgumentError(absl::StrCat(
          "use the checkpoint directory ", directory, ": process ", holder.pid, " on host ",
          holder.host, " is using it; give each run a directory of its own, or end that process"));
    }
  }
  if (error != 0) return lock;
  WriteHolder(file.get());
  lock.file_ = std::move(file);
  return lock;
}

}  // namespace muster::trainer
