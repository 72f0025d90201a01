#include "trainer/comm/host/shm_barrier.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

struct Stat {
  char state = 0;
  std::uint64_t start_time = 0;
};

// The contents of /proc/PID/stat; nullopt if it cannot be read.
std::optional<Stat> ReadStat(pid_t pid) {
  std::array<char, 64> path;
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", static_cast<int>(pid));
  const int fd = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::array<char, 1024> buffer;
  const ssize_t length = read(fd, buffer.data(), buffer.size());
  close(fd);
  if (length <= 0) return std::nullopt;

  // "pid (name) state ...", and the name may contain spaces and brackets: count from the last
  // bracket. The state is field 3 and the start time field 22 (proc(5)).
  const std::string line(buffer.data(), static_cast<std::size_t>(length));
  std::size_t at = line.rfind(") ");
  if (at == std::string::npos || at + 2 >= line.size()) return std::nullopt;
  at += 2;
  Stat stat{.state = line[at]};
  for (int field = 3; field < 22; ++field) {
    at = line.find(' ', at);
    if (at == std::string::npos) return std::nullopt;
    ++at;
  }
  stat.start_time = std::strtoull(line.c_str() + at, nullptr, 10);
  return stat;
}

}  // namespace

ProcessIdentity ThisProcess() {
  const pid_t pid = getpid();
  return {.pid = pid, .start_time = ReadStat(pid).value_or(Stat{}).start_time};
}

ProcessState LookAt(const ProcessIdentity& process) {
  const std::optional<Stat> stat = ReadStat(process.pid);
  if (!stat) {
    const bool no_such = kill(process.pid, 0) != 0 && errno == ESRCH;
    return no_such ? ProcessState::kGone : ProcessState::kRunning;
  }
  if (process.start_time != 0 && stat->start_time != process.start_time) {
    return ProcessState::kGone;
  }
  switch (stat->state) {
    case 'Z':
    case 'X':
    case 'x':
      return ProcessState::kGone;
    case 'T':
    case 't':
      return ProcessState::kStopped;
    default:
      return ProcessState::kRunning;
  }
}

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A waiter sleeps after this many polls.
constexpr int kLooks = 200;
// With Waiting::kSpin it first polls for this long: the cost of a sleep and a wake-up, several
// times as much where idle processors are put to sleep.
constexpr std::chrono::microseconds kSpin(100);
// How often a waiter checks its peers' processes.
constexpr milliseconds kLookEvery(50);
// More time than this between two checks means that this process was not running.
constexpr milliseconds kMostCredit(2 * kLookEvery);

// What can be wrong with a member. Stored in the segment, so the numbers must be the same in all
// builds.
enum Trouble : std::uint32_t { kGone = 1, kStopped = 2, kLeft = 3, kLate = 4 };

// Whether a counter that wraps around is at `target` or past it.
bool Reached(std::uint32_t count, std::uint32_t target) {
  return static_cast<std::int32_t>(count - target) >= 0;
}

// Whether we may run on at least as many processors as there are members. With fewer, a peer may
// need the one on which a waiter would spin.
bool EnoughProcessors(std::size_t members) {
  cpu_set_t processors;
  return sched_getaffinity(0, sizeof processors, &processors) == 0 &&
         static_cast<std::size_t>(CPU_COUNT(&processors)) >= members;
}

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

// Each on its own cache line; all zero at first.
struct alignas(64) ShmBarrier::Cell {
  std::atomic<std::uint32_t> arrivals;
  std::atomic<std::uint32_t>
      sleepers;  // waiting for `arrivals`; too high if one was killed while waiting
  std::atomic<std::uint32_t> left;
  std::atomic<std::int32_t> pid;  // 0: not joined yet
  std::atomic<std::uint64_t> start_time;
};

struct alignas(64) ShmBarrier::Board {
  // The first trouble that was found: (member + 1) << 8 | Trouble.
  std::atomic<std::uint32_t> failure;
};

ProcessState ShmBarrier::StateOf(const Cell& cell) {
  const ProcessIdentity process{.pid = cell.pid.load(), .start_time = cell.start_time.load()};
  return process.pid == 0 ? ProcessState::kRunning : LookAt(process);
}

std::size_t ShmBarrier::Bytes(int members) {
  return sizeof(Board) + static_cast<std::size_t>(members) * sizeof(Cell);
}

ShmBarrier::Cell& ShmBarrier::cell(int member) const {
  return reinterpret_cast<Cell*>(reinterpret_cast<std::byte*>(board_) + sizeof(Board))[member];
}

ShmBarrier::ShmBarrier(std::byte* memory, Options options)
    : board_(reinterpret_cast<Board*>(memory)),
      options_(std::move(options)),
      enough_processors_(EnoughProcessors(options_.ranks.size())) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
                std::atomic<std::uint32_t>::is_always_lock_free);
  const ProcessIdentity me = ThisProcess();
  cell(options_.member).start_time.store(me.start_time);
  cell(options_.member).pid.store(me.pid);
}

ShmBarrier::~ShmBarrier() {
  Leave();
}

void ShmBarrier::Leave() {
  Cell& mine = cell(options_.member);
  mine.left.store(1);
  WakeAll(mine.arrivals);
}

absl::Status ShmBarrier::Arrive(Waiting waiting) {
  if (!failed_.ok()) return failed_;
  ++arrivals_;
  Cell& mine = cell(options_.member);
  // Either we see the sleeper here, or it sees our arrival before it sleeps: both are sequentially
  // consistent.
  mine.arrivals.store(arrivals_);
  if (mine.sleepers.load() > 0) WakeAll(mine.arrivals);
  const int members = static_cast<int>(options_.ranks.size());
  for (int peer = 0; peer < members && failed_.ok(); ++peer) {
    if (peer != options_.member) failed_ = WaitFor(peer, arrivals_, waiting);
  }
  return failed_;
}

absl::Status ShmBarrier::WaitFor(int peer, std::uint32_t arrivals, Waiting waiting) {
  Cell& its = cell(peer);
  const bool spin = waiting == Waiting::kSpin && enough_processors_;
  const Clock::time_point spin_until = spin ? Clock::now() + kSpin : Clock::time_point();
  do {
    for (int i = 0; i < kLooks; ++i) {
      if (Reached(its.arrivals.load(std::memory_order_acquire), arrivals)) return absl::OkStatus();
      Pause();
    }
  } while (spin && Clock::now() < spin_until);

  absl::Status status;
  milliseconds waited(0);
  Clock::time_point looked = Clock::now();
  its.sleepers.fetch_add(1);
  for (;;) {
    const std::uint32_t seen = its.arrivals.load();
    if (Reached(seen, arrivals)) break;
    if (status = Failure(); !status.ok()) break;
    if (its.left.load() != 0 && !Reached(its.arrivals.load(), arrivals)) {
      status = Fail(peer, kLeft);
      break;
    }
    SleepOn(its.arrivals, seen, kLookEvery);
    const auto since = std::chrono::floor<milliseconds>(Clock::now() - looked);
    if (since < kLookEvery) continue;
    looked += since;
    waited += std::min(since, kMostCredit);
    if (Reached(its.arrivals.load(), arrivals)) break;
    if (status = LookAtPeers(arrivals); !status.ok()) break;
    if (waited >= options_.timeout) {
      status = Fail(peer, StateOf(its) == ProcessState::kStopped ? kStopped : kLate);
      break;
    }
  }
  its.sleepers.fetch_sub(1);
  return status;
}

absl::Status ShmBarrier::LookAtPeers(std::uint32_t arrivals) {
  for (std::size_t i = 0; i < options_.ranks.size(); ++i) {
    const int peer = static_cast<int>(i);
    const Cell& its = cell(peer);
    if (peer == options_.member || Reached(its.arrivals.load(), arrivals)) continue;
    const bool gone = StateOf(its) == ProcessState::kGone;
    // It may have arrived, and ended, since we read its cell.
    if (gone && !Reached(its.arrivals.load(), arrivals)) return Fail(peer, kGone);
  }
  return absl::OkStatus();
}

absl::Status ShmBarrier::Fail(int peer, std::uint32_t what) {
  std::uint32_t none = 0;
  const std::uint32_t failure = static_cast<std::uint32_t>(peer + 1) << 8U | what;
  if (board_->failure.compare_exchange_strong(none, failure)) {
    for (std::size_t i = 0; i < options_.ranks.size(); ++i) {
      WakeAll(cell(static_cast<int>(i)).arrivals);
    }
  }
  return Failure();
}

absl::Status ShmBarrier::Failure() const {
  const std::uint32_t failure = board_->failure.load();
  if (failure == 0) return absl::OkStatus();
  const int peer = static_cast<int>(failure >> 8U) - 1;
  const std::int32_t pid = cell(peer).pid.load();
  const std::string who = absl::StrCat(
      "shared memory: rank ", options_.ranks[static_cast<std::size_t>(peer)], " (pid ", pid, ") ");
  const std::string limit = absl::StrCat(options_.timeout.count() / 1000.0, " s");
  switch (failure & 0xffU) {
    case kGone:
      return absl::UnavailableError(absl::StrCat(who, "is gone"));
    case kStopped:
      return absl::UnavailableError(absl::StrCat(
          who, "is stopped, by a signal or a debugger, and was not continued within ", limit));
    case kLeft:
      return absl::UnavailableError(absl::StrCat(who, "has given up"));
    default:
      return absl::UnavailableError(absl::StrCat(who, "did not come within ", limit));
  }
}

}  // namespace muster::trainer
