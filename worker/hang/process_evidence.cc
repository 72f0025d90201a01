#include "worker/hang/process_evidence.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "worker/process/process_info.h"
#include "worker/process/spawn.h"

namespace muster::worker {
namespace {

// Fields of a line, counted from "0:".
enum Field : std::size_t { kLocal = 1, kRemote = 2, kState = 3, kQueues = 4, kInode = 9 };

// include/net/tcp_states.h
constexpr const char* kStates[] = {
    "?",     "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2",   "TIME_WAIT",
    "CLOSE", "CLOSE_WAIT",  "LAST_ACK", "LISTEN",   "CLOSING",   "NEW_SYN_RECV"};
constexpr const char kListen[] = "LISTEN";

// "0100007F:7544": words of four bytes in this machine's byte order, and the port.
std::optional<std::string> ParseAddress(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  std::uint64_t port = 0;
  if (parts.size() != 2 || !absl::SimpleHexAtoi(parts[1], &port)) return std::nullopt;
  if (parts[0].size() != 8 && parts[0].size() != 32) return std::nullopt;
  in6_addr address = {};
  for (std::size_t word = 0; word < parts[0].size() / 8; ++word) {
    std::uint32_t value = 0;
    if (!absl::SimpleHexAtoi(parts[0].substr(8 * word, 8), &value)) return std::nullopt;
    std::memcpy(address.s6_addr + 4 * word, &value, sizeof value);
  }
  char name[INET6_ADDRSTRLEN];
  const bool is_v4 = parts[0].size() == 8;
  if (is_v4) {
    ::inet_ntop(AF_INET, &address, name, sizeof name);
    return absl::StrCat(name, ":", port);
  }
  ::inet_ntop(AF_INET6, &address, name, sizeof name);
  return absl::StrCat("[", name, "]:", port);
}

void ParseLine(absl::string_view line, SocketTable* table) {
  const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (fields.size() <= kInode) return;
  const std::vector<absl::string_view> queues = absl::StrSplit(fields[kQueues], ':');
  const std::optional<std::string> local = ParseAddress(fields[kLocal]);
  const std::optional<std::string> remote = ParseAddress(fields[kRemote]);
  SocketInfo socket;
  unsigned state = 0;
  std::uint64_t inode = 0;
  if (!local.has_value() || !remote.has_value() || queues.size() != 2 ||
      !absl::SimpleHexAtoi(fields[kState], &state) ||
      !absl::SimpleHexAtoi(queues[0], &socket.send_queue) ||
      !absl::SimpleHexAtoi(queues[1], &socket.receive_queue) ||
      !absl::SimpleAtoi(fields[kInode], &inode) || inode == 0) {
    return;
  }
  socket.local = *local;
  socket.remote = *remote;
  socket.state = state < std::size(kStates) ? kStates[state] : kStates[0];
  table->insert_or_assign(inode, std::move(socket));
}

}  // namespace

void ParseSocketTable(std::string_view text, SocketTable* table) {
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ParseLine(line, table);
  }
}

SocketTable ReadSocketTable(pid_t pid) {
  SocketTable table;
  for (const char* family : {"tcp", "tcp6"}) {
    ParseSocketTable(ReadSmallFile(absl::StrCat("/proc/", pid, "/net/", family)), &table);
  }
  return table;
}

std::string Describe(const SocketInfo& socket) {
  if (socket.state == kListen) return absl::StrCat(socket.state, " ", socket.local);
  return absl::StrCat(socket.state, " ", socket.local, " -> ", socket.remote, ", to send ",
                      socket.send_queue, ", to read ", socket.receive_queue);
}

namespace {

// The inode numbers of the process's open sockets, by descriptor.
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

namespace {

constexpr char kPid[] = "{pid}";

// gdb with -nx, as the user's settings may ask questions.
constexpr char kGdb[] = "gdb -nx -p {pid} -batch -ex 'thread apply all bt'";
constexpr char kEuStack[] = "eu-stack -p {pid}";
constexpr char kPySpy[] = "py-spy dump --pid {pid}";

}  // namespace

absl::StatusOr<StackCommand> StackCommand::Parse(std::string_view text) {
  std::vector<std::string> words;
  // '' is a word, too, so an empty word differs from none.
  std::optional<std::string> word;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quote != '\'') {
      if (++i == text.size()) return absl::InvalidArgumentError("ends in a backslash");
      if (!word.has_value()) word.emplace();
      *word += text[i];
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        *word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      if (!word.has_value()) word.emplace();
    } else if (c == ' ' || c == '\t') {
      if (word.has_value()) words.push_back(*std::exchange(word, std::nullopt));
    } else {
      if (!word.has_value()) word.emplace();
      *word += c;
    }
  }
  if (quote != 0) return absl::InvalidArgumentError("has a quote that is not closed");
  if (word.has_value()) words.push_back(*std::move(word));
  if (words.empty() || words[0].empty()) return absl::InvalidArgumentError("is empty");
  if (std::none_of(words.begin() + 1, words.end(),
                   [](const std::string& each) { return absl::StrContains(each, kPid); })) {
    return absl::InvalidArgumentError(
        "does not say which process to inspect; put {pid} in its arguments, as in 'gdb -p {pid} "
        "-batch -ex bt'");
  }
  return StackCommand(std::move(words));
}

std::vector<std::string> StackCommand::ArgvFor(pid_t pid) const {
  std::vector<std::string> argv;
  for (const std::string& word : words_) {
    argv.push_back(absl::StrReplaceAll(word, {{kPid, std::to_string(pid)}}));
  }
  return argv;
}

std::optional<StackCommand> PickStackCommand(
    const std::function<bool(const std::string& program)>& is_installed, bool is_python) {
  for (const char* text : {kPySpy, kGdb, kEuStack}) {
    if (text == kPySpy && !is_python) continue;
    StackCommand command = *StackCommand::Parse(text);
    if (is_installed(command.program())) return command;
  }
  return std::nullopt;
}

bool IsInstalled(const std::string& program) {
  return FindProgram(program, std::getenv("PATH")).ok();
}

}  // namespace muster::worker
