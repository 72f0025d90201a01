#include "worker/process/process_state.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "worker/process/cgroup_paths.h"

namespace muster::worker {
namespace {

// Those in which programs are found waiting. Not every machine has all of them.
constexpr std::pair<int, const char*> kCalls[] = {
    {SYS_read, "read"},
    {SYS_write, "write"},
    {SYS_readv, "readv"},
    {SYS_writev, "writev"},
    {SYS_pread64, "pread64"},
    {SYS_pwrite64, "pwrite64"},
    {SYS_ioctl, "ioctl"},
    {SYS_openat, "openat"},
    {SYS_close, "close"},
    {SYS_fsync, "fsync"},
    {SYS_fdatasync, "fdatasync"},
    {SYS_flock, "flock"},
    {SYS_fcntl, "fcntl"},
    {SYS_futex, "futex"},
    {SYS_ppoll, "ppoll"},
    {SYS_pselect6, "pselect6"},
    {SYS_epoll_pwait, "epoll_pwait"},
    {SYS_accept4, "accept4"},
    {SYS_connect, "connect"},
    {SYS_sendto, "sendto"},
    {SYS_recvfrom, "recvfrom"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_nanosleep, "nanosleep"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_wait4, "wait4"},
    {SYS_waitid, "waitid"},
    {SYS_rt_sigsuspend, "rt_sigsuspend"},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
    {SYS_munmap, "munmap"},
#ifdef SYS_poll
    {SYS_poll, "poll"},
#endif
#ifdef SYS_select
    {SYS_select, "select"},
#endif
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, "epoll_wait"},
#endif
#ifdef SYS_open
    {SYS_open, "open"},
#endif
#ifdef SYS_pause
    {SYS_pause, "pause"},
#endif
};

// From /proc/PID/syscall: "202 0x7f.. ...", "running", or "-1 ..." for one that waits outside of
// any call.
std::string CallName(const std::string& text) {
  int number = -1;
  if (!absl::SimpleAtoi(text.substr(0, text.find(' ')), &number) || number < 0) return "";
  const auto known = std::find_if(std::begin(kCalls), std::end(kCalls),
                                  [number](const auto& call) { return call.first == number; });
  return known != std::end(kCalls) ? known->second : absl::StrCat("call ", number);
}

// `directory` is /proc/PID, which is about the first thread, or /proc/PID/task/TID.
std::optional<TaskState> ReadTask(const std::string& directory, pid_t id) {
  const std::string stat = ReadSmallFile(directory + "/stat");
  // "123 (name) S 1 ...", where the name may contain anything.
  const std::size_t name = stat.find('(');
  const std::size_t end_of_name = stat.rfind(')');
  if (end_of_name == std::string::npos || end_of_name + 2 >= stat.size()) return std::nullopt;
  TaskState task;
  task.id = id;
  task.name = stat.substr(name + 1, end_of_name - name - 1);
  task.state = stat[end_of_name + 2];
  task.wchan = ReadSmallFile(directory + "/wchan");
  // Waiting in none, or the kernel keeps its symbols to itself.
  if (task.wchan == "0") task.wchan.clear();
  task.syscall = CallName(ReadSmallFile(directory + "/syscall"));
  return task;
}

}  // namespace

std::optional<TaskState> ReadState(pid_t pid) {
  return ReadTask(absl::StrCat("/proc/", pid), pid);
}

std::vector<TaskState> ReadThreads(pid_t pid) {
  std::vector<TaskState> threads;
  const std::string path = absl::StrCat("/proc/", pid, "/task");
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(::opendir(path.c_str()), ::closedir);
  while (const dirent* entry = tasks == nullptr ? nullptr : ::readdir(tasks.get())) {
    const pid_t id = static_cast<pid_t>(std::atoi(entry->d_name));
    if (id <= 0) continue;
    if (auto task = ReadTask(absl::StrCat(path, "/", id), id)) threads.push_back(*std::move(task));
  }
  // The first thread's number is the process's own, and it comes first whatever the others are.
  std::sort(threads.begin(), threads.end(), [pid](const TaskState& a, const TaskState& b) {
    return std::pair(a.id != pid, a.id) < std::pair(b.id != pid, b.id);
  });
  return threads;
}

std::string StateName(char state) {
  constexpr std::pair<char, const char*> kNames[] = {{'R', "running"},
                                                     {'S', "sleeping"},
                                                     {'D', "uninterruptible sleep"},
                                                     {'T', "stopped"},
                                                     {'t', "held by a tracer"},
                                                     {'Z', "dead, not waited for"},
                                                     {'X', "dead"},
                                                     {'I', "idle"},
                                                     {'P', "parked"}};
  for (const auto& [letter, name] : kNames) {
    if (letter == state) return absl::StrCat(std::string(1, state), " (", name, ")");
  }
  return std::string(1, state);
}

std::string DescribeState(pid_t pid) {
  const std::optional<TaskState> task = ReadState(pid);
  if (!task.has_value()) return "";
  std::string text = absl::StrCat("is in state ", StateName(task->state));
  if (!task->wchan.empty()) absl::StrAppend(&text, " in ", task->wchan);
  if (const pid_t tracer = TracerOf(pid)) absl::StrAppend(&text, ", traced by process ", tracer);
  return text;
}

pid_t TracerOf(pid_t pid) {
  constexpr absl::string_view kField = "TracerPid:";
  const std::string status = ReadSmallFile(absl::StrCat("/proc/", pid, "/status"));
  const std::size_t at = status.find(std::string(kField));
  return at == std::string::npos ? 0 : std::atoi(&status[at + kField.size()]);
}

bool RunsPython(pid_t pid) {
  char program[PATH_MAX];
  const ssize_t size =
      ::readlink(absl::StrCat("/proc/", pid, "/exe").c_str(), program, sizeof program);
  if (size <= 0) return false;
  const std::string name =
      std::filesystem::path(std::string(program, static_cast<std::size_t>(size))).filename();
  return absl::StartsWith(name, "python") || absl::StartsWith(name, "pypy");
}

}  // namespace muster::worker
