// What silent ranks do, from /proc and gdb output of real ones: DistributedDataParallel over gloo
// (PyTorch 1.13), of which one rank did something else.
#include "worker/hang/activity.h"

#include <gtest/gtest.h>

namespace muster::worker {
namespace {

using Kind = Activity::Kind;
using std::chrono::milliseconds;

// A line of /proc/PID/stat up to the CPU times, in ticks of 10 ms.
std::string Stat(char state, int user, int system = 50) {
  return "13655 (python3) " + std::string(1, state) +
         " 13654 13655 13655 0 -1 4194304 91210 0 0 0 " + std::to_string(user) + " " +
         std::to_string(system) + " 0 0 20 0 6 0 1391";
}

Observation Seen(char state, const std::string& wchan, const std::string& syscall,
                 const std::string& file = "", int ticks = 0) {
  Observation seen{.before = *ParseTask(13655, Stat(state, 122), wchan, syscall),
                   .after = *ParseTask(13655, Stat(state, 122 + ticks), wchan, syscall),
                   .watched = milliseconds(500)};
  seen.after.file = file;
  return seen;
}

// As the kernel showed them.
const Observation kAllReduce =
    Seen('S', "futex_do_wait",
         "202 0x28a65480 0x189 0x0 0x0 0x0 0xffffffff 0x7fff3a5c89a0 0x7f7baf538f16");
const Observation kInPoll = Seen('S', "poll_schedule_timeout.constprop.0",
                                 "7 0x7f7b84000e10 0x8 0xffffffff 0xaf88bc3b1ef683f8 0x0 "
                                 "0x7f7b84001c90 0x7f7b8ad91ce0 0x7f7baf5af26f");
const Observation kInEpoll = Seen(
    'S', "do_epoll_wait", "232 0x11 0x7f7b89d8fb80 0x40 0xa 0x0 0x0 0x7f7b89d8fb00 0x7f7baf5bbf36");
const Observation kInRecv =
    Seen('S', "wait_woken", "45 0x4 0x7ff 0x1 0x0 0x0 0x0 0x7ffd 0x7f52", "socket:[4242]");
const Observation kSleep =
    Seen('S', "hrtimer_nanosleep",
         "230 0x1 0x1 0x7ffdff4276f0 0x0 0x0 0x0 0x7ffdff4276b0 0x7fe210a21545");
const Observation kLoop = Seen('R', "0", "running", "", 49);
const Observation kFifo =
    Seen('S', "wait_for_partner", "257 0xffffff9c 0x7f11 0x80000 0x0 0x0 0x0 0x7f 0x7e");
const Observation kPipe =
    Seen('S', "pipe_read", "0 0x9 0x7f5214000b90 0x1 0x0 0x0 0x0 0x7f 0x7e", "pipe:[30812]");
const Observation kInput =
    Seen('S', "wait_woken", "0 0x0 0x1e5f2c0 0x400 0x0 0x0 0x0 0x7f 0x7e", "/dev/pts/3");
const Observation kFlock =
    Seen('S', "locks_lock_inode_wait", "73 0xa 0x2 0x0 0x0 0x0 0x0 0x7f 0x7e", "/data/cache.lock");
const Observation kChild = Seen('S', "do_wait", "61 0x35b7 0x7ffc 0x0 0x0 0x0 0x0 0x7f 0x7e");
const Observation kOnNfs =
    Seen('D', "rpc_wait_bit_killable", "0 0x5 0x7f 0x1000 0x0 0x0 0x0 0x7f 0x7e", "/mnt/train.bin");
const Observation kStopped =
    Seen('T', "do_signal_stop", "230 0x1 0x1 0x7ffdff4276f0 0x0 0x0 0x0 0x7f 0x7e");

Observation With(Observation seen, std::vector<std::string> stack) {
  seen.stack = std::move(stack);
  return seen;
}

const std::vector<std::string> kReduceStack = {
    "__futex_abstimed_wait_common64", "___pthread_cond_wait", "c10d::Reducer::finalize_backward()",
    "THPEngine_run_backward(_object*, _object*, _object*)"};
const std::vector<std::string> kLockStack = {
    "__futex_abstimed_wait_common64", "__new_sem_wait_slow64", "PyThread_acquire_lock_timed",
    "?? from /usr/bin/python3", "_PyEval_EvalFrameDefault"};

// "2: sleeps", or "nobody".
std::string Odd(const std::vector<Observation>& ranks) {
  std::vector<Activity> activities;
  for (const Observation& seen : ranks) {
    activities.push_back(ActivityOf(static_cast<int>(activities.size()), seen));
  }
  const auto odd = FindOddOne(activities);
  return odd ? std::to_string(odd->rank) + ": " + odd->what : "nobody";
}

// Rank 2 slept, the others waited in all-reduce, and rank 0 was named as the root cause.
TEST(ActivityTest, TheOneThatDoesSomethingElseIsFound) {
  const Observation& w = kAllReduce;
  EXPECT_EQ(Odd({w, w, kSleep}), "2: sleeps");
  EXPECT_EQ(Odd({w, kSleep}), "1: sleeps");
  EXPECT_EQ(Odd({w, kInPoll, kSleep, kInEpoll}), "2: sleeps");
  EXPECT_EQ(Odd({w, kInRecv, w, kLoop}), "3: computes");
  EXPECT_EQ(Odd({kLoop, w}), "0: computes");
  EXPECT_EQ(Odd({w, w, kFifo}), "2: opens a file");
  EXPECT_EQ(Odd({w, w, kPipe}), "2: reads a pipe");
  EXPECT_EQ(Odd({w, w, kInput}), "2: reads the terminal");
  EXPECT_EQ(Odd({w, kFlock, w}), "1: waits for a lock on /data/cache.lock");
  EXPECT_EQ(Odd({w, kChild, w}), "1: waits for a process that it has started");
  EXPECT_EQ(Odd({w, w, kOnNfs}), "2: is in uninterruptible sleep in rpc_wait_bit_killable");
  EXPECT_EQ(Odd({w, w, kStopped}), "2: is stopped");
}

TEST(ActivityTest, NobodyIsNamedWhereNoneStandsOut) {
  const Observation& w = kAllReduce;
  EXPECT_EQ(Odd({w, w, w}), "nobody");
  EXPECT_EQ(Odd({w}), "nobody");
  EXPECT_EQ(Odd({kSleep, kSleep, kSleep}), "nobody");
  EXPECT_EQ(Odd({w, w, kSleep, kSleep}), "nobody");
  EXPECT_EQ(Odd({w, kSleep, kSleep}), "nobody") << "it is not the one that waits";
  EXPECT_EQ(Odd({w, kInRecv, kInPoll}), "nobody") << "each may wait for others";
  EXPECT_EQ(Odd({kLoop, kLoop, w}), "nobody") << "the others may just be slower";
  Observation hidden = Seen('S', "", "");
  EXPECT_EQ(Odd({hidden, kSleep, w}), "nobody") << "the kernel may not show it";
  std::vector<Activity> gone = {ActivityOf(0, kAllReduce), ActivityOf(1, std::nullopt),
                                ActivityOf(2, kSleep)};
  EXPECT_EQ(FindOddOne(gone), std::nullopt);
}

// Some libraries wait for other ranks by spinning, or by polling every second.
TEST(ActivityTest, WhereAllOthersDoTheSameTheOneThatDiffersIsFound) {
  EXPECT_EQ(Odd({kLoop, kLoop, kSleep, kLoop}), "2: sleeps");
  EXPECT_EQ(Odd({kSleep, kSleep, kFlock}), "2: waits for a lock on /data/cache.lock");
  EXPECT_EQ(Odd({kSleep, kLoop}), "nobody");
  EXPECT_EQ(Odd({kSleep, kLoop, kFlock}), "nobody");
}

// To the kernel, a lock that is never released and an all-reduce are both a futex.
TEST(ActivityTest, StacksDecideWhereTheCallsAreAlike) {
  const Observation reduces = With(kAllReduce, kReduceStack);
  const Observation locked = With(kAllReduce, kLockStack);
  const std::string expected = "is in no operation of several ranks (PyThread_acquire_lock_timed)";
  EXPECT_EQ(Odd({reduces, reduces, locked}), "2: " + expected);
  EXPECT_EQ(Odd({reduces, locked}), "1: " + expected);
  EXPECT_EQ(Odd({reduces, With(kInPoll, {"__GI___poll", "select_poll_poll"}), reduces}),
            "1: is in no operation of several ranks (select_poll_poll)");
  EXPECT_EQ(Odd({reduces, kAllReduce}), "nobody") << "gdb showed nothing of rank 1";
  EXPECT_EQ(Odd({locked, locked, reduces}), "nobody") << "it is not the one that waits";
  EXPECT_EQ(Odd({locked, locked, With(kAllReduce, {"sem_wait", "my_queue_get"})}),
            "2: is in no operation of several ranks (sem_wait, my_queue_get)");
  EXPECT_EQ(Odd({locked, With(kAllReduce, {"my_queue_get"})}), "nobody");
  EXPECT_EQ(Odd({With(kLoop, {"?? from /lib/libcuda.so.1"}),
                 With(kLoop, {"?? from /lib/libcuda.so.1"}), locked}),
            "2: " + expected)
      << "a rank that waits for a GPU's all-reduce turns round";
  EXPECT_EQ(ActivityOf(3, reduces).kind, Kind::kInCollective);
}

TEST(ActivityTest, WhatLastsAMomentIsNotWhatItDoes) {
  Observation paging = kOnNfs;
  paging.before.state = 'S';
  EXPECT_EQ(ActivityOf(0, paging).kind, Kind::kUnknown);
  Observation woken = kLoop;
  woken.before.state = 'S';
  woken.after.processor_time = woken.before.processor_time + milliseconds(10);
  EXPECT_EQ(ActivityOf(0, woken).kind, Kind::kUnknown);
  Observation once = kLoop;
  once.watched = milliseconds(0);
  EXPECT_EQ(ActivityOf(0, once).kind, Kind::kUnknown) << "there was no second look";
}

TEST(ActivityTest, FirstThreadIsFoundInWhatToolsPrint) {
  constexpr char kGdb[] =
      "Thread 2 (Thread 0x7f5223a686c0 (LWP 13682) \"python3\"):\n"
      "#0  0x00007f524826526f in __GI___poll (fds=0x7f521c000e10) at poll.c:29\n"
      "\n"
      "Thread 1 (Thread 0x7f5248168040 (LWP 13655) \"python3\"):\n"
      "#0  __futex_abstimed_wait_common64 (private=0, cancel=true) at ./nptl/futex-internal.c:57\n"
      "#1  0x00007f5243ca5023 in c10d::Reducer::finalize_backward() () from /lib/libtorch_cpu.so\n"
      "#2  0x0000000000550c6e in ?? ()\n"
      "#3  0x00007f5243ca5891 in ?? () from /lib/libtorch_cpu.so.1.13\n"
      "[Inferior 1 (process 13655) detached]\n";
  EXPECT_EQ(FirstThreadIn(kGdb, 13655),
            (std::vector<std::string>{"__futex_abstimed_wait_common64",
                                      "c10d::Reducer::finalize_backward()", "??",
                                      "?? from /lib/libtorch_cpu.so.1.13"}));
  EXPECT_EQ(FirstThreadIn("Thread 1 (process 7):\n#0  0x00401136 in main ()\n", 7),
            std::vector<std::string>{"main"});
  EXPECT_EQ(FirstThreadIn("PID 7 - process\nTID 7:\n#0  0x00007fe2 clock_nanosleep\nTID 8:\n"
                          "#0  0x00007fe3 poll\n",
                          7),
            std::vector<std::string>{"clock_nanosleep"});
  EXPECT_EQ(
      FirstThreadIn("Process 7: python3 train.py\nPython v3.11.2\n\nThread 7 (idle): "
                    "\"MainThread\"\n    wait (threading.py:320)\n    <module> (train.py:9)\n",
                    7),
      (std::vector<std::string>{"wait (threading.py:320)", "<module> (train.py:9)"}));
  EXPECT_TRUE(FirstThreadIn("ptrace: Operation not permitted.\n", 7).empty());
}

}  // namespace
}  // namespace muster::worker
