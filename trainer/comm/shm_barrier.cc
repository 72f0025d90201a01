#include "trainer/comm/shm_barrier.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"

#include "trainer/comm/futex.h"

namespace muster::trainer {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A waiter sleeps after this many looks.
constexpr int kLooks = 200;
// With Waiting::kSpin it first looks for this long: what a sleep and a wake-up cost, several times
// where processors that have nothing to do are put to rest.
constexpr std::chrono::microseconds kSpin(100);
// How often a waiter looks its peers up.
constexpr milliseconds kLookEvery(50);
// More time than this between two looks means that we did not run ourselves.
constexpr milliseconds kMostCredit(2 * kLookEvery);

// What can be wrong with a member. In the segment, so the numbers are the same for all builds.
enum Trouble : std::uint32_t { kGone = 1, kStopped = 2, kLeft = 3, kLate = 4 };

// Whether a counter that goes round is at `target` or past it.
bool Reached(std::uint32_t count, std::uint32_t target) {
  return static_cast<std::int32_t>(count - target) >= 0;
}

// Whether as many processors as there are members may run us. Where there are fewer, a peer may
// need the one that a waiter would look on.
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

// Each on a cache line of its own; all zero at first.
struct alignas(64) ShmBarrier::Cell {
  std::atomic<std::uint32_t> arrivals;
  std::atomic<std::uint32_t>
      sleepers;  // waiting for `arrivals`; too high when one was killed there
  std::atomic<std::uint32_t> left;
  std::atomic<std::int32_t> pid;  // 0: not there yet
  std::atomic<std::uint64_t> start_time;
};

struct alignas(64) ShmBarrier::Board {
  // The first trouble that somebody found: (member + 1) << 8 | Trouble.
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
  // Either we see the sleeper here, or it sees our arrival before it sleeps: both go through the
  // one order of sequentially consistent operations.
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
    // It may have arrived, and ended, since we looked at its cell.
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
