#include "worker/group/stop_watch.h"

#include <sys/wait.h>

#include <csignal>
#include <utility>

namespace muster::worker {
namespace {

// The signal's handler is shared by all signal_sets that are waiting for it, and its flags, too.
void HearOfStops() {
  struct sigaction action;
  if (::sigaction(SIGCHLD, nullptr, &action) != 0) return;
  action.sa_flags &= ~SA_NOCLDSTOP;
  ::sigaction(SIGCHLD, &action, nullptr);
}

// Most news are of ends, which are none of ours: one look at all children together, by the kernel,
// saves a thousand workers that end a look at each of the others.
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
