#include "worker/tree/signal_targets.h"

#include <algorithm>
#include <csignal>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace muster::worker {
namespace {

enum class ProgramKind { kShell, kWaiter, kOther };

constexpr std::string_view kShells[] = {"sh",    "bash", "dash", "ash",  "busybox", "zsh",
                                        "ksh",   "mksh", "lksh", "yash", "rbash",   "fish",
                                        "ksh93", "posh", "csh",  "tcsh", "rksh",    "bash-static"};
constexpr std::string_view kWaiters[] = {
    // coreutils, util-linux and the like
    "time", "timeout", "setsid", "flock", "script", "unshare", "nsenter", "cpulimit",
    // for another user
    "su", "runuser", "sudo", "doas",
    // tracers and profilers
    "strace", "ltrace", "perf", "nsys", "ncu", "nvprof", "compute-sanitizer", "py-spy",
    // the first process of a container
    "tini", "tini-static", "docker-init", "dumb-init", "catatonit",
    // environments
    "micromamba", "uv", "pixi",
    // on SIGINT it waits for its recipe to exit
    "make", "gmake"};
// Waiters written in Python or wrapped in it; recognized by the script's name.
constexpr std::string_view kScripts[] = {"conda", "mamba", "nsys", "ncu"};

// Programs that catch signals only to clean up, and exit when their input ends: never the purpose
// of a pipeline.
constexpr std::string_view kFilters[] = {
    "sort", "less", "more", "pv", "rotatelogs", "cronolog",
    // compression, as in `zcat data.gz | train` and `train | gzip >log.gz`
    "gzip", "pigz", "bzip2", "pbzip2", "lbzip2", "xz", "zstd", "lz4", "lzop", "brotli", "tar",
    "gpg"};

template <typename Names>
bool IsOneOf(const Names& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::string_view BaseName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// The script or the module after -m in a Python command line; empty if there is neither.
std::string_view ScriptOf(const std::vector<std::string>& argv) {
  for (std::size_t i = 1; i < argv.size(); ++i) {
    if (argv[i] == "-m") return i + 1 < argv.size() ? std::string_view(argv[i + 1]) : "";
    if (argv[i] == "-c") return "";
    if (argv[i] == "-W" || argv[i] == "-X")
      ++i;
    else if (!argv[i].starts_with("-"))
      return BaseName(argv[i]);
  }
  return "";
}

ProgramKind KindOf(const ProcessInfo& process, const ProcessTraits& traits) {
  if (IsOneOf(kShells, traits.program)) return ProgramKind::kShell;
  // coreutils may be a single program that acts by the name it was called by.
  if (IsOneOf(kWaiters, traits.program) ||
      (traits.program == "coreutils" && IsOneOf(kWaiters, process.name))) {
    return ProgramKind::kWaiter;
  }
  // The kernel names a process after the script that was executed.
  const bool waits = IsPython(traits.program) &&
                     (IsOneOf(kScripts, process.name) || IsOneOf(kScripts, ScriptOf(traits.argv)));
  return waits ? ProgramKind::kWaiter : ProgramKind::kOther;
}

struct Child {
  ProcessInfo process;
  ProcessTraits traits;
};

// A shell starts several processes within one tick of 10 ms, so the pid breaks ties.
bool IsOlder(const Child& a, const Child& b) {
  return std::tie(a.process.start_time, a.process.pid) <
         std::tie(b.process.start_time, b.process.pid);
}

bool WritesTo(const ProcessTraits& traits, const std::string& pipe) {
  return traits.out == pipe || traits.err == pipe;
}

class TargetSearch {
 public:
  TargetSearch(const std::vector<ProcessInfo>& tree, int signal, SignalPurpose purpose,
               const TraitsLookup& traits_of)
      : tree_(tree), signal_(signal), purpose_(purpose), traits_of_(traits_of) {}

  // Adds a process, or those it waits for; false if none was added.
  bool Add(const ProcessInfo& process, const ProcessTraits& traits, int signal) {
    switch (KindOf(process, traits)) {
      case ProgramKind::kShell:
        return AddShell(process, traits, signal);
      case ProgramKind::kWaiter:
        return AddAwaitedBy(process, signal);
      case ProgramKind::kOther:
        if (AddChildOfSystem(process, traits, signal)) return true;
        targets_.push_back({process, signal});
        return true;
    }
    return false;
  }

  void AddAlone(const ProcessInfo& process) { targets_.push_back({process, signal_}); }

  std::vector<SignalTarget> Take() { return std::move(targets_); }

 private:
  // Oldest first.
  std::vector<Child> ChildrenOf(const ProcessInfo& parent) const {
    std::vector<Child> children;
    for (const ProcessInfo& process : tree_) {
      if (process.parent == parent.pid) children.push_back({process, traits_of_(process.pid)});
    }
    std::sort(children.begin(), children.end(), IsOlder);
    return children;
  }

  bool AddShell(const ProcessInfo& shell, const ProcessTraits& traits, int signal) {
    std::vector<Child> children = ChildrenOf(shell);
    // With a trap for EXIT, bash catches all fatal signals, and still exits.
    const bool ends_of_all = traits.Catches(SIGVTALRM);
    const bool is_stop = purpose_ == SignalPurpose::kStop;
    const bool catches = traits.Catches(signal) && (is_stop || !ends_of_all);
    const std::vector<Child> all = children;
    LeaveProgramsOfPipelines(traits, signal, children);
    // A command substitution is written by the foreground children, not by a child started earlier
    // (`exec 3< <(producer)`).
    const bool reads = std::any_of(all.begin(), all.end(), [&](const Child& child) {
      const bool is_older = !children.empty() && IsOlder(child, children.back());
      return !is_older &&
             (IsOneOf(traits.reads, child.traits.out) || IsOneOf(traits.reads, child.traits.err));
    });
    bool found = (is_stop || catches) && !reads;
    if (found) targets_.push_back({shell, signal});
    if (children.empty()) return found;
    const bool waits_for_jobs = !traits.Ignores(SIGINT) && IsBackgroundJob(children.back());
    if (!waits_for_jobs) {
      // The foreground child with what remains of its pipeline.
      const auto foreground = std::find_if(all.begin(), all.end(), [&](const Child& child) {
        return child.process.pid == children.back().process.pid;
      });
      const std::vector<const Child*> pipeline = PipelineOf(*foreground, all);
      for (const Child& child : children) {
        const bool is_told = std::any_of(
            pipeline.begin(), pipeline.end(),
            [&](const Child* member) { return member->process.pid == child.process.pid; });
        if (is_told) found |= Add(child.process, child.traits, signal);
      }
      return found;
    }
    if (catches) return found;
    for (const Child& child : children) {
      const bool deaf = is_stop && child.traits.Ignores(signal);
      found |= Add(child.process, child.traits, deaf ? SIGTERM : signal);
    }
    return found;
  }

  // Whether a shell started it with SIGINT and SIGQUIT ignored. It may have installed a handler for
  // one of them since; bash itself always ignores SIGQUIT.
  bool IsBackgroundJob(const Child& child) const {
    const ProcessTraits& traits = child.traits;
    const bool by_interrupt =
        traits.Ignores(SIGINT) && (traits.Ignores(SIGQUIT) || traits.Catches(SIGQUIT));
    const bool by_quit = traits.Ignores(SIGQUIT) && traits.Catches(SIGINT);
    const bool is_shell = KindOf(child.process, traits) == ProgramKind::kShell;
    if (is_shell ? !traits.Ignores(SIGINT) : !by_interrupt && !by_quit) return false;
    return !HasStartedInForeground(child.process);
  }

  bool HasStartedInForeground(const ProcessInfo& parent) const {
    const std::vector<Child> children = ChildrenOf(parent);
    return std::any_of(children.begin(), children.end(), [this](const Child& child) {
      const ProcessTraits& traits = child.traits;
      const bool is_shell = KindOf(child.process, traits) == ProgramKind::kShell;
      const bool is_default = !traits.Ignores(SIGQUIT) && !traits.Catches(SIGQUIT);
      return (!is_shell && is_default && !traits.Ignores(SIGINT)) ||
             HasStartedInForeground(child.process);
    });
  }

  // Adds the youngest child of a program that ignores the signal as system(3) does; false if it
  // does not or has no child.
  bool AddChildOfSystem(const ProcessInfo& program, const ProcessTraits& traits, int signal) {
    const bool is_left_to_child = signal == SIGINT || signal == SIGQUIT;
    if (!is_left_to_child || !traits.Ignores(SIGINT) || !traits.Ignores(SIGQUIT)) return false;
    const std::vector<Child> children = ChildrenOf(program);
    return std::any_of(children.rbegin(), children.rend(), [&](const Child& child) {
      return !child.traits.Ignores(signal) && Add(child.process, child.traits, signal);
    });
  }

  // Erases all members of pipelines except the targets.
  void LeaveProgramsOfPipelines(const ProcessTraits& shell, int signal,
                                std::vector<Child>& children) const {
    std::set<pid_t> erased;
    std::set<pid_t> seen;
    for (const Child& child : children) {
      if (seen.contains(child.process.pid)) continue;
      const std::vector<const Child*> pipeline = PipelineOf(child, children);
      for (const Child* member : pipeline) seen.insert(member->process.pid);
      const bool reads_shell =
          pipeline.size() == 1 && !child.traits.in.empty() && WritesTo(shell, child.traits.in);
      if (pipeline.size() == 1 && !reads_shell) continue;
      std::set<pid_t> told;
      if (!reads_shell) told = ProgramsOf(pipeline, signal);
      for (const Child* member : pipeline) {
        if (!told.contains(member->process.pid)) erased.insert(member->process.pid);
      }
    }
    std::erase_if(children, [&](const Child& child) { return erased.contains(child.process.pid); });
  }

  // The targets in a pipeline, whose first member comes first. That is the first program with a
  // handler of its own. Every Python program handles SIGINT, which proves nothing: without other
  // handlers all of them get it, as from a terminal. If there is no handler at all, it is the first
  // program that is not a filter.
  std::set<pid_t> ProgramsOf(const std::vector<const Child*>& pipeline, int signal) const {
    std::set<pid_t> minds;
    const Child* first = nullptr;
    for (const Child* member : pipeline) {
      if (Insists(*member, signal)) return {member->process.pid};
      if (Minds(*member, signal)) minds.insert(member->process.pid);
      if (first == nullptr && !IsFilter(*member)) first = member;
    }
    if (!minds.empty()) return minds;
    return {(first != nullptr ? first : pipeline.front())->process.pid};
  }

  // `child` and all processes connected to it by pipes, writers before readers.
  static std::vector<const Child*> PipelineOf(const Child& child,
                                              const std::vector<Child>& siblings) {
    std::vector<std::pair<std::size_t, const Child*>> found;
    const std::vector<const Child*> before = WritersBefore(child, siblings);
    const Child* const source = before.empty() ? &child : before.back();
    for (const Child& other : siblings) {
      const std::vector<const Child*> writers = WritersBefore(other, siblings);
      const bool is_connected =
          &other == source || std::find(writers.begin(), writers.end(), source) != writers.end();
      if (is_connected || &other == &child ||
          std::find(before.begin(), before.end(), &other) != before.end()) {
        found.emplace_back(writers.size(), &other);
      }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<const Child*> pipeline;
    for (const auto& [place, member] : found) pipeline.push_back(member);
    return pipeline;
  }

  // The siblings whose output reaches `child`, directly or through others.
  static std::vector<const Child*> WritersBefore(const Child& child,
                                                 const std::vector<Child>& siblings) {
    std::vector<const Child*> found;
    std::vector<const Child*> readers = {&child};
    while (!readers.empty()) {
      const Child* const reader = readers.back();
      readers.pop_back();
      if (reader->traits.in.empty()) continue;
      for (const Child& other : siblings) {
        if (other.process.pid == child.process.pid || !WritesTo(other.traits, reader->traits.in) ||
            std::find(found.begin(), found.end(), &other) != found.end()) {
          continue;
        }
        found.push_back(&other);
        readers.push_back(&other);
      }
    }
    return found;
  }

  // Whether the predicate holds for the process or, if it is a wrapper, for one that it waits for.
  template <typename Predicate>
  bool IsOrAwaits(const Child& child, const Predicate& so) const {
    if (KindOf(child.process, child.traits) == ProgramKind::kOther) return so(child.traits);
    const std::vector<Child> below = ChildrenOf(child.process);
    return std::any_of(below.begin(), below.end(),
                       [&](const Child& each) { return IsOrAwaits(each, so); });
  }

  bool IsFilter(const Child& child) const {
    return IsOrAwaits(
        child, [](const ProcessTraits& traits) { return IsOneOf(kFilters, traits.program); });
  }

  // Has a handler for the signal.
  bool Minds(const Child& child, int signal) const {
    return IsOrAwaits(child, [signal](const ProcessTraits& traits) {
      return traits.Catches(signal) && !IsOneOf(kFilters, traits.program);
    });
  }

  // Has a handler other than Python's, which handles only SIGINT.
  bool Insists(const Child& child, int signal) const {
    return IsOrAwaits(child, [signal](const ProcessTraits& traits) {
      const bool is_own = signal != SIGINT || traits.Catches(SIGTERM) || traits.Catches(SIGHUP) ||
                          traits.Catches(SIGUSR1) || traits.Catches(SIGUSR2);
      return traits.Catches(signal) && is_own && !IsOneOf(kFilters, traits.program);
    });
  }

  // A waiter may have helpers that it started earlier or that were reparented to it.
  bool AddAwaitedBy(const ProcessInfo& waiter, int signal) {
    const std::vector<Child> children = ChildrenOf(waiter);
    return std::any_of(children.begin(), children.end(), [&](const Child& child) {
      return Add(child.process, child.traits, signal);
    });
  }

  const std::vector<ProcessInfo>& tree_;
  const int signal_;
  const SignalPurpose purpose_;
  const TraitsLookup& traits_of_;
  std::vector<SignalTarget> targets_;
};

}  // namespace

std::vector<SignalTarget> SignalTargets(const std::vector<ProcessInfo>& tree,
                                        const ProcessInfo& root, int signal, SignalPurpose purpose,
                                        const TraitsLookup& traits_of) {
  TargetSearch search(tree, signal, purpose, traits_of);
  const bool found = search.Add(root, traits_of(root.pid), signal);
  // A waiter that has not started its program yet.
  if (!found && purpose == SignalPurpose::kStop) search.AddAlone(root);
  return search.Take();
}

}  // namespace muster::worker
