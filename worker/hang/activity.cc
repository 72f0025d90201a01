#include "worker/hang/activity.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace muster::worker {
namespace {

using Kind = Activity::Kind;

struct Finding {
  Kind kind = Kind::kUnknown;
  std::string what{};
};

bool IsOneOf(const std::string& call, std::initializer_list<const char*> calls) {
  return std::find(calls.begin(), calls.end(), call) != calls.end();
}

bool IsTerminal(const std::string& file) {
  return absl::StartsWith(file, "/dev/pts/") || absl::StartsWith(file, "/dev/tty") ||
         file == "/dev/console";
}

// `verb` is "reads" or "writes".
Finding OnFile(const char* verb, const std::string& file) {
  if (file.empty()) return {};
  if (absl::StartsWith(file, "pipe:")) return {Kind::kElsewhere, absl::StrCat(verb, " a pipe")};
  if (IsTerminal(file)) return {Kind::kElsewhere, absl::StrCat(verb, " the terminal")};
  // Sockets, eventfds, and device drivers.
  const bool may_wait = file.front() != '/' || absl::StartsWith(file, "/dev/");
  if (may_wait) return {Kind::kMayWait, absl::StrCat(verb, " ", file)};
  return {Kind::kElsewhere, absl::StrCat(verb, " ", file)};
}

Finding InCall(const TaskState& task) {
  const std::string& call = task.syscall;
  if (IsOneOf(call, {"futex", "poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait",
                     "recvfrom", "recvmsg", "sendto", "sendmsg", "accept4", "connect"})) {
    return {Kind::kMayWait, absl::StrCat("waits in ", call)};
  }
  if (IsOneOf(call, {"nanosleep", "clock_nanosleep"})) return {Kind::kElsewhere, "sleeps"};
  if (IsOneOf(call, {"flock", "fcntl"})) {
    return {Kind::kElsewhere,
            absl::StrCat("waits for a lock", task.file.empty() ? "" : " on " + task.file)};
  }
  if (IsOneOf(call, {"wait4", "waitid"})) {
    return {Kind::kElsewhere, "waits for a process that it has started"};
  }
  if (IsOneOf(call, {"read", "readv", "pread64"})) return OnFile("reads", task.file);
  if (IsOneOf(call, {"write", "writev", "pwrite64", "fsync", "fdatasync"})) {
    return OnFile("writes", task.file);
  }
  if (IsOneOf(call, {"open", "openat"})) return {Kind::kElsewhere, "opens a file"};
  if (IsOneOf(call, {"pause", "rt_sigsuspend", "rt_sigtimedwait"})) {
    return {Kind::kElsewhere, "waits for a signal"};
  }
  return {};
}

Finding FindingOf(const Observation& seen) {
  const TaskState& task = seen.after;
  const bool was_so = seen.watched.count() > 0 && seen.before.state == task.state;
  if (task.state == 'T') return {Kind::kElsewhere, "is stopped"};
  if (task.state == 't') return {Kind::kElsewhere, "is held by a debugger"};
  // A tenth of the time: waiting processes wake up now and then, and busy ones share the CPU.
  const auto taken = task.processor_time - seen.before.processor_time;
  const bool is_busy = seen.watched.count() > 0 && taken * 10 >= seen.watched;
  if (is_busy || (task.state == 'R' && was_so)) return {Kind::kElsewhere, "computes"};
  if (task.state == 'D' && was_so) {
    return {Kind::kElsewhere,
            absl::StrCat("is in uninterruptible sleep",
                         task.wchan.empty() ? "" : absl::StrCat(" in ", task.wchan))};
  }
  // A brief operation, such as reading a page.
  if (task.state != 'S') return {};
  return InCall(task);
}

// Functions and libraries of collective operations: torch.distributed's, gloo's, NCCL's and MPI's.
bool IsOfCollective(const std::string& function) {
  constexpr absl::string_view kMarks[] = {"c10d::",  "gloo::",        "nccl", "rccl",
                                          "MPI_",    "ompi_",         "ucc_", "distributed_c10d.py",
                                          "libcuda", "libhsa-runtime"};
  return std::any_of(std::begin(kMarks), std::end(kMarks),
                     [&](absl::string_view mark) { return absl::StrContains(function, mark); });
}

// The names of the innermost functions, without those at the end of every wait.
std::string Innermost(const std::vector<std::string>& stack) {
  constexpr std::size_t kNamed = 2;
  std::string names;
  std::size_t count = 0;
  for (const std::string& function : stack) {
    const bool is_plumbing = absl::StartsWith(function, "_") || absl::StartsWith(function, "??") ||
                             absl::StrContains(function, "futex");
    if (is_plumbing) continue;
    absl::StrAppend(&names, count == 0 ? "" : ", ", function);
    if (++count == kNamed) break;
  }
  return names;
}

std::vector<const Activity*> OfKind(const std::vector<Activity>& ranks, Kind kind) {
  std::vector<const Activity*> those;
  for (const Activity& one : ranks) {
    if (one.kind == kind) those.push_back(&one);
  }
  return those;
}

// The one of at least three `ranks` that differs while all others are alike.
template <typename Key>
const Activity* OneThatDiffers(const std::vector<Activity>& ranks, Key key) {
  if (ranks.size() < 3) return nullptr;
  for (const Activity& one : ranks) {
    const Activity& other = &one == &ranks.front() ? ranks.back() : ranks.front();
    const auto alike = std::count_if(ranks.begin(), ranks.end(),
                                     [&](const Activity& each) { return key(each) == key(other); });
    if (key(one) != key(other) && static_cast<std::size_t>(alike) == ranks.size() - 1) return &one;
  }
  return nullptr;
}

}  // namespace

Activity ActivityOf(int rank, const std::optional<Observation>& seen) {
  if (!seen) return {.rank = rank};
  Finding found = FindingOf(*seen);
  // The stack shows a collective whether it waits by sleeping or by spinning.
  if (std::any_of(seen->stack.begin(), seen->stack.end(), IsOfCollective)) {
    found = {Kind::kInCollective, "is in an operation of several ranks"};
  }
  return {.rank = rank, .kind = found.kind, .what = std::move(found.what), .stack = seen->stack};
}

std::optional<Activity> FindOddOne(const std::vector<Activity>& ranks) {
  if (ranks.size() < 2 || !OfKind(ranks, Kind::kUnknown).empty()) return std::nullopt;
  const std::vector<const Activity*> elsewhere = OfKind(ranks, Kind::kElsewhere);
  if (elsewhere.size() == 1) return *elsewhere.front();
  if (!elsewhere.empty()) {
    const Activity* const odd =
        OneThatDiffers(ranks, [](const Activity& each) { return each.what; });
    return odd != nullptr && odd->kind == Kind::kElsewhere ? std::optional(*odd) : std::nullopt;
  }
  // All are in calls that may wait for other ranks: their callers decide.
  const std::vector<const Activity*> others = OfKind(ranks, Kind::kMayWait);
  const Activity* odd = others.size() == 1 ? others.front() : nullptr;
  const bool all_have_stacks = std::none_of(
      ranks.begin(), ranks.end(), [](const Activity& each) { return each.stack.empty(); });
  if (odd == nullptr && all_have_stacks) {
    odd = OneThatDiffers(ranks, [](const Activity& each) { return each.stack; });
  }
  if (odd == nullptr || odd->stack.empty() || odd->kind == Kind::kInCollective) return std::nullopt;
  Activity found = *odd;
  const std::string where = Innermost(found.stack);
  found.what = absl::StrCat("is in no operation of several ranks",
                            where.empty() ? "" : absl::StrCat(" (", where, ")"));
  return found;
}

// gdb:      Thread 1 (Thread 0x7f52 (LWP 17) "python3"):
//           #1  0x00007f52 in c10d::Reducer::finalize_backward() () from /lib/libtorch_cpu.so
// eu-stack: TID 17:
//           #1  0x00007f52 c10d::Reducer::finalize_backward()
// py-spy:   Thread 17 (idle): "MainThread"
//               wait (threading.py:320)
std::vector<std::string> FirstThreadIn(std::string_view stacks, pid_t pid) {
  const std::string id = absl::StrCat(pid);
  std::vector<std::string> functions;
  bool is_first = false;
  for (absl::string_view line :
       absl::StrSplit(absl::string_view(stacks.data(), stacks.size()), '\n')) {
    if (absl::StartsWith(line, "Thread ") || absl::StartsWith(line, "TID ")) {
      is_first = absl::StrContains(line, absl::StrCat("(LWP ", id, ")")) ||
                 absl::StrContains(line, absl::StrCat("(process ", id, ")")) ||
                 absl::StartsWith(line, absl::StrCat("TID ", id, ":")) ||
                 absl::StartsWith(line, absl::StrCat("Thread ", id, " ")) ||
                 absl::StrContains(line, "\"MainThread\"");
      continue;
    }
    if (!is_first) continue;
    if (absl::ConsumePrefix(&line, "#")) {
      line.remove_prefix(std::min(line.find(' '), line.size()));
      line = absl::StripLeadingAsciiWhitespace(line);
      if (absl::StartsWith(line, "0x")) {
        line.remove_prefix(std::min(line.find(' '), line.size()));
        line = absl::StripLeadingAsciiWhitespace(line);
        absl::ConsumePrefix(&line, "in ");
      }
      // For a function without a name, keep the library.
      const std::size_t from = line.find(" from ");
      const bool is_nameless = absl::StartsWith(line, "??");
      const std::size_t arguments = line.find(" (");
      functions.emplace_back(
          is_nameless && from != absl::string_view::npos
              ? absl::StrCat("??", line.substr(from))
              : std::string(absl::StripAsciiWhitespace(line.substr(0, arguments))));
    } else if (absl::StartsWith(line, "    ") && absl::EndsWith(line, ")")) {
      functions.emplace_back(absl::StripAsciiWhitespace(line));
    }
  }
  return functions;
}

namespace {

template <typename Condition>
std::vector<HangSuspect> Those(const std::vector<HangSuspect>& suspects, Condition condition) {
  std::vector<HangSuspect> those;
  std::copy_if(suspects.begin(), suspects.end(), std::back_inserter(those), condition);
  return those;
}

}  // namespace

Culprit PickCulprit(const std::vector<HangSuspect>& suspects,
                    const std::vector<RankFlight>& flights,
                    const std::vector<Activity>& activities) {
  if (suspects.empty()) std::abort();
  // Logs of ranks that beat or have exited say nothing about why these hang.
  std::vector<RankFlight> logs;
  std::copy_if(
      flights.begin(), flights.end(), std::back_inserter(logs), [&](const RankFlight& flight) {
        return std::any_of(suspects.begin(), suspects.end(),
                           [&](const HangSuspect& suspect) { return suspect.rank == flight.rank; });
      });
  const std::vector<int> awaited = AwaitedRanks(logs);
  const auto is_awaited = [&](const HangSuspect& suspect) {
    return std::find(awaited.begin(), awaited.end(), suspect.rank) != awaited.end();
  };

  std::vector<HangSuspect> left =
      Those(suspects, [](const HangSuspect& suspect) { return suspect.stopped; });
  const bool known = !left.empty() || !awaited.empty();
  if (left.empty()) left = suspects;
  const std::vector<HangSuspect> both = Those(left, is_awaited);
  const int rank = both.empty() ? left.front().rank : both.front().rank;
  if (known) return {.rank = rank, .known = true};
  const bool waits = std::any_of(logs.begin(), logs.end(), [&](const RankFlight& flight) {
    const FlightRecord* const place = PlaceOf(flight);
    return flight.rank == rank && flight.kept && place != nullptr && Waits(*place);
  });
  if (waits) return {.rank = rank, .only_waits = true};

  std::vector<Activity> seen;
  for (const HangSuspect& suspect : suspects) {
    const auto found = std::find_if(activities.begin(), activities.end(),
                                    [&](const Activity& one) { return one.rank == suspect.rank; });
    seen.push_back(found == activities.end() ? Activity{.rank = suspect.rank} : *found);
  }
  if (const auto odd = FindOddOne(seen)) {
    return {.rank = odd->rank, .known = true, .doing = odd->what};
  }
  const bool all_wait = std::all_of(seen.begin(), seen.end(), [](const Activity& one) {
    return one.kind == Activity::Kind::kInCollective ||
           (one.kind == Activity::Kind::kMayWait && one.stack.empty());
  });
  return {.rank = rank, .only_waits = all_wait, .known = suspects.size() == 1 && !all_wait};
}

}  // namespace muster::worker
