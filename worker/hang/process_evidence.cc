#include "worker/hang/process_evidence.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "worker/process/process_info.h"

namespace muster::worker {
namespace {

// The inode numbers of the sockets that the process has open, by descriptor.
std::map<int, std::uint64_t> SocketInodes(pid_t pid) {
  std::map<int, std::uint64_t> inodes;
  const std::string path = absl::StrCat("/proc/", pid, "/fd");
  const std::unique_ptr<DIR, int (*)(DIR*)> descriptors(::opendir(path.c_str()), ::closedir);
  while (const dirent* entry = descriptors == nullptr ? nullptr : ::readdir(descriptors.get())) {
    char target[64];
    const ssize_t size =
        ::readlink(absl::StrCat(path, "/", entry->d_name).c_str(), target, sizeof target);
    if (size <= 0) continue;
    // "socket:[12345]"
    absl::string_view text(target, static_cast<std::size_t>(size));
    std::uint64_t inode = 0;
    if (absl::ConsumePrefix(&text, "socket:[") && absl::ConsumeSuffix(&text, "]") &&
        absl::SimpleAtoi(text, &inode)) {
      inodes.emplace(std::atoi(entry->d_name), inode);
    }
  }
  return inodes;
}

std::string Doing(const TaskState& task) {
  std::string text = StateName(task.state);
  if (!task.wchan.empty()) absl::StrAppend(&text, " in ", task.wchan);
  if (!task.syscall.empty()) absl::StrAppend(&text, ", system call ", task.syscall);
  return text;
}

std::string Rest(std::size_t count) {
  return count > kMaxShown ? absl::StrCat("  and ", count - kMaxShown, " more\n") : "";
}

}  // namespace

std::optional<ProcessEvidence> ReadEvidence(pid_t pid) {
  const std::optional<ProcessInfo> info = ReadProcess(pid);
  if (!info.has_value()) return std::nullopt;
  ProcessEvidence process;
  process.pid = pid;
  process.parent = info->parent;
  process.tracer = TracerOf(pid);
  process.threads = ReadThreads(pid);
  if (process.threads.empty()) return std::nullopt;
  const std::map<int, std::uint64_t> inodes = SocketInodes(pid);
  if (inodes.empty()) return process;
  const SocketTable table = ReadSocketTable(pid);
  for (const auto& [descriptor, inode] : inodes) {
    // Others are Unix sockets and the like.
    const auto found = table.find(inode);
    if (found != table.end()) process.sockets.push_back(found->second);
  }
  return process;
}

std::string Format(const ProcessEvidence& process) {
  const TaskState& first = process.threads.front();
  std::string text = absl::StrCat("process ", process.pid, " (", first.name, "), child of ",
                                  process.parent, ": ", Doing(first), "\n");
  if (process.tracer != 0) absl::StrAppend(&text, "  traced by process ", process.tracer, "\n");
  for (std::size_t i = 0; i < std::min(process.threads.size(), kMaxShown); ++i) {
    const TaskState& thread = process.threads[i];
    absl::StrAppendFormat(&text, "  thread %d %-15s %s\n", thread.id, thread.name, Doing(thread));
  }
  text += Rest(process.threads.size());
  for (std::size_t i = 0; i < std::min(process.sockets.size(), kMaxShown); ++i) {
    absl::StrAppend(&text, "  socket ", Describe(process.sockets[i]), "\n");
  }
  return text + Rest(process.sockets.size());
}

std::vector<pid_t> TreeOf(pid_t root) {
  std::vector<pid_t> tree;
  for (const ProcessInfo& info : WithDescendants(ReadProcesses(), {root})) {
    if (!info.zombie) tree.push_back(info.pid);
  }
  return tree;
}

bool AnyStopped(pid_t root) {
  const std::vector<pid_t> tree = TreeOf(root);
  return std::any_of(tree.begin(), tree.end(), [](pid_t pid) {
    const std::optional<TaskState> state = ReadState(pid);
    return state.has_value() && state->state == 'T';
  });
}

}  // namespace muster::worker
