#include "worker/tree/worker_tree.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <set>
#include <utility>

#include "base/unique_fd.h"
#include "worker/process/process_state.h"
#include "worker/tree/orphan_hunt.h"

namespace muster::worker {
namespace {

// How often a tree that keeps starting processes is searched again while it is signalled.
constexpr int kMaxPasses = 16;

bool IsSubreaper() {
  int subreaper = 0;
  return ::prctl(PR_GET_CHILD_SUBREAPER, &subreaper) == 0 && subreaper != 0;
}

// Blocking calls of libraries (threads of gRPC, LibTorch) must not see EINTR because of SIGCHLD,
// and stopped children are not of interest.
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
  // Linux 3.4. If it fails, orphans leave the tree, as they do by default.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  AwaitChild();
}

WorkerTree::~WorkerTree() {
  // The last SIGCHLD may still be pending.
  ReapOrphans();
  if (!was_subreaper_) ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

void WorkerTree::RemoveWorker(pid_t worker) {
  workers_.erase(worker);
  // Dead orphans may have been hidden behind it.
  ReapOrphans();
}

void WorkerTree::ExcludeChild(pid_t child) {
  if (const auto info = ReadProcess(child)) strangers_.emplace(info->pid, info->start_time);
}

bool WorkerTree::IsAdopted(const ProcessInfo& child) const {
  if (child.parent != self_ || child.session == session_) return false;
  if (workers_.contains(child.pid) || strangers_.contains({child.pid, child.start_time})) {
    return false;
  }
  // The first process of a container inherits all orphans, including those of users who entered it
  // from outside. It must reap all of them, but only living ones with our mark are ours.
  return self_ != 1 || child.zombie || HasMark(child.pid, AgentMark());
}

std::vector<ProcessInfo> WorkerTree::Members() const {
  return LiveBelow(
      [this](const ProcessInfo& info) { return workers_.contains(info.pid) || IsAdopted(info); });
}

std::vector<ProcessInfo> WorkerTree::Workers(const std::vector<ProcessInfo>& members) const {
  std::vector<ProcessInfo> workers;
  for (const ProcessInfo& info : members) {
    if (workers_.contains(info.pid)) workers.push_back(info);
  }
  return workers;
}

std::vector<ProcessInfo> WorkerTree::Leftovers() const {
  const auto adopted = [this](const ProcessInfo& info) { return IsAdopted(info); };
  std::vector<ProcessInfo> leftovers = LiveBelow(adopted);
  // A process whose parent died while /proc was read may have been listed under that parent. By now
  // it is our child.
  if (leftovers.empty()) leftovers = LiveBelow(adopted);
  return leftovers;
}

template <typename Predicate>
std::vector<ProcessInfo> WorkerTree::LiveBelow(Predicate is_root) const {
  // Roots are our children, and often there are none: then the machine's other processes, perhaps
  // thousands, need not be read.
  const std::vector<ProcessInfo> children = ReadOwnChildren();
  if (std::none_of(children.begin(), children.end(), is_root)) return {};
  // From one snapshot: a process that loses its parent meanwhile is then below it or a root itself.
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
  // A chain that changes during the walk soon ends at process 1.
  while (info.has_value() && info->parent != self_) info = ReadProcess(info->parent);
  if (!info.has_value() || !(workers_.contains(info->pid) || IsAdopted(*info))) {
    return std::nullopt;
  }
  return info;
}

void WorkerTree::Signal(std::initializer_list<int> signals) const {
  // A process group is signalled atomically, whatever its members fork meanwhile.
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
    // Reap those that were dead already and so not listed.
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
    // Only peeks: which of our children has exited?
    siginfo_t ended = {};
    if (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0) break;
    // Its Process waits for a worker soon, and then we look again.
    if (workers_.contains(ended.si_pid)) break;
    const std::optional<ProcessInfo> child = ReadProcess(ended.si_pid);
    if (child.has_value() && IsAdopted(*child)) {
      if (::waitpid(child->pid, nullptr, WNOHANG) != child->pid) break;
      reaped = true;
      continue;
    }
    // Another owner's dead child may stay in front of ours.
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

namespace {

// How often a tree that keeps starting processes is searched again.
constexpr int kMostLooks = 16;

}  // namespace

SuspendedTree::SuspendedTree(const WorkerTree& tree) {
  std::set<std::pair<pid_t, std::uint64_t>> seen;
  bool found_more = true;
  for (int look = 0; look < kMostLooks && found_more; ++look) {
    found_more = false;
    for (const ProcessInfo& member : tree.Members()) {
      if (!seen.emplace(member.pid, member.start_time).second) continue;
      found_more = true;
      const auto state = ReadState(member.pid);
      if (state.has_value() && state->state == 'T') continue;
      if (SignalProcess(member, SIGSTOP)) stopped_.push_back(member);
    }
  }
}

void SuspendedTree::Continue() const {
  for (const ProcessInfo& member : stopped_) SignalProcess(member, SIGCONT);
}

namespace {

// All signal_sets that wait for the signal share its handler and flags.
void HearOfStops() {
  struct sigaction action;
  if (::sigaction(SIGCHLD, nullptr, &action) != 0) return;
  action.sa_flags &= ~SA_NOCLDSTOP;
  ::sigaction(SIGCHLD, &action, nullptr);
}

// Most SIGCHLDs are for exits, which do not matter here. One call for all children avoids checking
// each of a thousand workers on every exit.
bool AnyoneStoppedOrWentOn() {
  siginfo_t news = {};
  return ::waitid(P_ALL, 0, &news, WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT) == 0 &&
         news.si_pid != 0;
}

}  // namespace

StopWatch::StopWatch(boost::asio::io_context& io, Callbacks callbacks)
    : callbacks_(std::move(callbacks)), child_news_(io, SIGCHLD) {
  HearOfStops();
  AwaitNews();
}

void StopWatch::Remove(pid_t child) {
  watched_.erase(child);
  stopped_.erase(child);
}

void StopWatch::AwaitNews() {
  child_news_.async_wait(lifetime_.Guard([this](boost::system::error_code error, int) {
    if (error) return;
    AwaitNews();
    if (!AnyoneStoppedOrWentOn()) return;
    // A copy, as callbacks may add and remove children.
    const std::set<pid_t> children = watched_;
    for (const pid_t child : children) {
      if (!Look(child)) return;
    }
  }));
}

bool StopWatch::Look(pid_t child) {
  siginfo_t news = {};
  if (!watched_.contains(child) ||
      ::waitid(P_PID, static_cast<id_t>(child), &news, WSTOPPED | WCONTINUED | WNOHANG) != 0 ||
      news.si_pid != child) {
    return true;
  }
  const base::Lifetime::Watch watch = lifetime_.watch();
  if (news.si_code == CLD_STOPPED) {
    if (stopped_.insert(child).second) {
      // A copy, as the callback may destroy the watch.
      const auto on_stopped = callbacks_.on_stopped;
      if (on_stopped) on_stopped(child, news.si_status);
    }
  } else if (news.si_code == CLD_CONTINUED && stopped_.erase(child) > 0) {
    const auto on_continued = callbacks_.on_continued;
    if (on_continued) on_continued(child);
  }
  return !watch.over();
}

}  // namespace muster::worker
