#include "worker/tree/worker_tree.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <set>

#include "base/unique_fd.h"
#include "worker/tree/agent_mark.h"

namespace muster::worker {
namespace {

// How often a tree that keeps starting processes is looked at again while it is signalled.
constexpr int kMaxPasses = 16;

bool IsSubreaper() {
  int subreaper = 0;
  return ::prctl(PR_GET_CHILD_SUBREAPER, &subreaper) == 0 && subreaper != 0;
}

// What is not of our making and blocks (gRPC's, LibTorch's threads) need not see EINTR for it; and
// a child that was merely stopped is no news.
void MakeChildSignalQuiet() {
  struct sigaction action;
  if (::sigaction(SIGCHLD, nullptr, &action) != 0) return;
  action.sa_flags |= SA_RESTART | SA_NOCLDSTOP;
  action.sa_flags &= ~SA_NOCLDWAIT;
  ::sigaction(SIGCHLD, &action, nullptr);
}

}  // namespace

WorkerTree::WorkerTree(boost::asio::io_context& io, std::function<void()> on_orphan)
    : self_(::getpid()),
      session_(::getsid(0)),
      was_subreaper_(IsSubreaper()),
      on_orphan_(std::move(on_orphan)),
      child_ended_(io, SIGCHLD) {
  MakeChildSignalQuiet();
  for (const ProcessInfo& child : ReadOwnChildren()) {
    strangers_.emplace(child.pid, child.start_time);
  }
  // Linux 3.4; where it fails, orphans leave the tree as they always did.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  AwaitChild();
}

WorkerTree::~WorkerTree() {
  // Of the last to end, the signal may be still on its way.
  ReapOrphans();
  if (!was_subreaper_) ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

void WorkerTree::RemoveWorker(pid_t worker) {
  workers_.erase(worker);
  // Orphans may have ended behind it.
  ReapOrphans();
}

void WorkerTree::AddStranger(pid_t child) {
  if (const auto info = ReadProcess(child)) strangers_.emplace(info->pid, info->start_time);
}

bool WorkerTree::IsAdopted(const ProcessInfo& child) const {
  if (child.parent != self_ || child.session == session_) return false;
  if (workers_.contains(child.pid) || strangers_.contains({child.pid, child.start_time})) {
    return false;
  }
  // The first process of a container inherits all orphans there are, also those of people who have
  // come in from outside. The dead are its to bury; of the living only ours are its business.
  return self_ != 1 || child.zombie || HasMark(child.pid, AgentMark());
}

std::vector<ProcessInfo> WorkerTree::Members() const {
  return LiveBelow(
      [this](const ProcessInfo& info) { return workers_.contains(info.pid) || IsAdopted(info); });
}

std::vector<ProcessInfo> WorkerTree::Leftovers() const {
  const auto adopted = [this](const ProcessInfo& info) { return IsAdopted(info); };
  std::vector<ProcessInfo> leftovers = LiveBelow(adopted);
  // A process whose parent ended while /proc was read may have been seen below a parent that was
  // not. By now it is a child of ours.
  if (leftovers.empty()) leftovers = LiveBelow(adopted);
  return leftovers;
}

template <typename Predicate>
std::vector<ProcessInfo> WorkerTree::LiveBelow(Predicate is_root) const {
  // Roots are children of ours, and often there is none: then the machine's other processes, which
  // may be thousands, need not be looked at.
  const std::vector<ProcessInfo> children = ReadOwnChildren();
  if (std::none_of(children.begin(), children.end(), is_root)) return {};
  // From one and the same look: what loses its parent meanwhile is then below it or a root itself.
  const std::vector<ProcessInfo> all = ReadProcesses();
  std::set<pid_t> roots;
  for (const ProcessInfo& info : all) {
    if (is_root(info)) roots.insert(info.pid);
  }
  std::vector<ProcessInfo> members = WithDescendants(all, roots);
  std::erase_if(members, [](const ProcessInfo& info) { return info.zombie; });
  return members;
}

std::optional<ProcessInfo> WorkerTree::RootOf(pid_t pid) const {
  std::optional<ProcessInfo> info = ReadProcess(pid);
  // A chain that changes while it is followed ends soon enough, in process 1.
  while (info.has_value() && info->parent != self_) info = ReadProcess(info->parent);
  if (!info.has_value() || !(workers_.contains(info->pid) || IsAdopted(*info))) {
    return std::nullopt;
  }
  return info;
}

void WorkerTree::Signal(std::initializer_list<int> signals) const {
  // A process group gets a signal in one piece, whatever its members start meanwhile.
  for (const int signal : signals) {
    for (const pid_t worker : workers_) ::kill(-worker, signal);
  }
  std::set<std::pair<pid_t, std::uint64_t>> reached;
  bool found_more = true;
  for (int pass = 0; pass < kMaxPasses && found_more; ++pass) {
    found_more = false;
    for (const ProcessInfo& member : Members()) {
      if (workers_.contains(member.group)) continue;
      if (!reached.emplace(member.pid, member.start_time).second) continue;
      found_more = true;
      for (const int signal : signals) SignalProcess(member, signal);
    }
  }
}

void WorkerTree::KillLeftovers(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const std::vector<ProcessInfo> leftovers = Leftovers();
    // Whoever was not among them for being dead already is waited for now.
    ReapOrphans();
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (leftovers.empty() || left.count() <= 0) return;
    for (const ProcessInfo& leftover : leftovers) SignalProcess(leftover, SIGKILL);
    const base::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, leftovers[0].pid, 0)));
    pollfd ended = {pidfd.get(), POLLIN, 0};
    if (pidfd.valid()) ::poll(&ended, 1, static_cast<int>(left.count()));
  }
}

bool WorkerTree::ReapOrphans() {
  bool reaped = false;
  for (;;) {
    // Only looks: which of our children has ended?
    siginfo_t ended = {};
    if (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0) break;
    // A worker is waited for in a moment, and then we look again.
    if (workers_.contains(ended.si_pid)) break;
    const std::optional<ProcessInfo> child = ReadProcess(ended.si_pid);
    if (child.has_value() && IsAdopted(*child)) {
      if (::waitpid(child->pid, nullptr, WNOHANG) != child->pid) break;
      reaped = true;
      continue;
    }
    // Somebody else's child may stand before ours for as long as its owner likes.
    reaped |= ReapBehindStrangers();
    break;
  }
  return reaped;
}

bool WorkerTree::ReapBehindStrangers() {
  bool reaped = false;
  for (const ProcessInfo& child : ReadOwnChildren()) {
    if (!child.zombie || !IsAdopted(child)) continue;
    reaped |= ::waitpid(child.pid, nullptr, WNOHANG) == child.pid;
  }
  return reaped;
}

void WorkerTree::AwaitChild() {
  child_ended_.async_wait(lifetime_.Guard([this](boost::system::error_code error, int) {
    if (error) return;
    AwaitChild();
    if (!ReapOrphans()) return;
    // A copy, as the callback may destroy the tree.
    const auto on_orphan = on_orphan_;
    on_orphan();
  }));
}

}  // namespace muster::worker
