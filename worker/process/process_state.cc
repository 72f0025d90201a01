#include "worker/process/process_state.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "worker/process/process_info.h"

namespace muster::worker {
namespace {

// System calls in which programs usually wait. Not every architecture has all of them.
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

// Parses /proc/PID/syscall: "202 0x7f.. ...", "running", or "-1 ..." for a task that waits outside
// of a call.
void ReadCall(absl::string_view text, TaskState& task) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  int number = -1;
  if (!absl::SimpleAtoi(words[0], &number) || number < 0) return;
  const auto known = std::find_if(std::begin(kCalls), std::end(kCalls),
                                  [number](const auto& call) { return call.first == number; });
  task.syscall = known != std::end(kCalls) ? known->second : absl::StrCat("call ", number);
  std::uint64_t first = 0;
  if (words.size() > 1 && absl::SimpleHexAtoi(words[1], &first) && first < (1u << 20)) {
    task.descriptor = static_cast<int>(first);
  }
}

// `directory` is /proc/PID, for the main thread, or /proc/PID/task/TID.
std::optional<TaskState> ReadTask(const std::string& directory, pid_t id) {
  return ParseTask(id, ReadSmallFile(directory + "/stat"), ReadSmallFile(directory + "/wchan"),
                   ReadSmallFile(directory + "/syscall"));
}

// Reads the link without following it: the target's file system may hang.
std::string ReadLink(pid_t pid, absl::string_view name) {
  char target[PATH_MAX];
  const ssize_t size =
      ::readlink(absl::StrCat("/proc/", pid, "/", name).c_str(), target, sizeof target);
  return size > 0 ? std::string(target, static_cast<std::size_t>(size)) : "";
}

// "python3.11", even if the file was replaced: "/usr/bin/python3.11 (deleted)".
std::string ReadProgram(pid_t pid) {
  const std::string path = ReadLink(pid, "exe");
  const absl::string_view kept = absl::StripSuffix(path, " (deleted)");
  return std::string(kept.substr(kept.rfind('/') + 1));
}

// The rest of a line of /proc/PID/status, or "": StatusField(status, "Threads:\t").
absl::string_view StatusField(absl::string_view status, absl::string_view name) {
  const std::size_t at = status.find(absl::StrCat("\n", name));
  if (at == absl::string_view::npos) return "";
  status.remove_prefix(at + 1 + name.size());
  return status.substr(0, status.find('\n'));
}

}  // namespace

std::optional<TaskState> ParseTask(pid_t id, const std::string& stat, const std::string& wchan,
                                   const std::string& syscall) {
  // "123 (name) S 1 ...", where the name may contain anything.
  const std::size_t name = stat.find('(');
  const std::size_t end_of_name = stat.rfind(')');
  if (end_of_name == std::string::npos || end_of_name + 2 >= stat.size()) return std::nullopt;
  TaskState task;
  task.id = id;
  task.name = stat.substr(name + 1, end_of_name - name - 1);
  task.state = stat[end_of_name + 2];
  // utime and stime: fields 14 and 15 of the line, with the state as field 3.
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(stat).substr(end_of_name + 2), ' ');
  std::int64_t user = 0;
  std::int64_t system = 0;
  if (fields.size() > 12 && absl::SimpleAtoi(fields[11], &user) &&
      absl::SimpleAtoi(fields[12], &system)) {
    task.processor_time =
        std::chrono::milliseconds((user + system) * 1000 / ::sysconf(_SC_CLK_TCK));
  }
  // "0": not waiting, or the kernel hides its symbols.
  if (wchan != "0") task.wchan = wchan;
  ReadCall(syscall, task);
  return task;
}

std::optional<TaskState> ReadState(pid_t pid) {
  std::optional<TaskState> task = ReadTask(absl::StrCat("/proc/", pid), pid);
  if (task && task->descriptor >= 0)
    task->file = ReadLink(pid, absl::StrCat("fd/", task->descriptor));
  return task;
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
  // The main thread's id is the pid; it goes first.
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
  pid_t tracer = 0;
  const std::string status = ReadSmallFile(absl::StrCat("/proc/", pid, "/status"));
  return absl::SimpleAtoi(StatusField(status, "TracerPid:\t"), &tracer) ? tracer : 0;
}

bool RunsPython(pid_t pid) {
  return IsPython(ReadProgram(pid));
}

namespace {

std::string ReadPipe(pid_t pid, const std::string& name) {
  std::string target = ReadLink(pid, name);
  return absl::StartsWith(target, "pipe:[") ? target : "";
}

std::vector<std::string> ReadPipesRead(pid_t pid) {
  std::vector<std::string> pipes;
  for (int fd = STDERR_FILENO + 1; fd <= 9; ++fd) {
    const std::string name = absl::StrCat("fd/", fd);
    struct stat link;
    // The link's permissions are the descriptor's access mode.
    if (::lstat(absl::StrCat("/proc/", pid, "/", name).c_str(), &link) != 0) continue;
    if ((link.st_mode & (S_IRUSR | S_IWUSR)) != S_IRUSR) continue;
    if (std::string pipe = ReadPipe(pid, name); !pipe.empty()) pipes.push_back(pipe);
  }
  return pipes;
}

std::uint64_t SignalSet(absl::string_view status, absl::string_view name) {
  return std::strtoull(std::string(StatusField(status, name)).c_str(), nullptr, 16);
}

}  // namespace

ProcessTraits ReadTraits(pid_t pid) {
  ProcessTraits traits;
  traits.program = ReadProgram(pid);
  const std::string status = ReadSmallFile(absl::StrCat("/proc/", pid, "/status"));
  traits.ignored = SignalSet(status, "SigIgn:\t");
  traits.caught = SignalSet(status, "SigCgt:\t");
  traits.in = ReadPipe(pid, "fd/0");
  traits.out = ReadPipe(pid, "fd/1");
  traits.err = ReadPipe(pid, "fd/2");
  traits.reads = ReadPipesRead(pid);
  if (IsPython(traits.program) && StatusField(status, "Threads:\t") == "1" &&
      !absl::StartsWith(StatusField(status, "State:\t"), "D")) {
    traits.argv = absl::StrSplit(ReadSmallFile(absl::StrCat("/proc/", pid, "/cmdline")), '\0');
  }
  return traits;
}

}  // namespace muster::worker
