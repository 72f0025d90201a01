#include "trainer/worker/launcher_link.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <csignal>

#include "test/trainer/forked_members.h"

namespace muster::trainer {
namespace {

using Say = ForkedMembers::Say;

// Lets one signal come that was sent to this process, or waits for it.
void TakeOne() {
  sigset_t none;
  sigemptyset(&none);
  sigsuspend(&none);
}

// Makes this process remember signals, which it only receives in TakeOne().
void Remember() {
  sigset_t stops;
  sigemptyset(&stops);
  for (const int signal : kStopSignals) {
    std::signal(signal, SIG_DFL);  // the test's parent may ignore it
    sigaddset(&stops, signal);
  }
  sigprocmask(SIG_BLOCK, &stops, nullptr);
  EndOnStopSignals();
  RememberStopSignals();
}

// Gives this process its own terminal; bytes written to the result are typed there.
int OpenTerminal() {
  setsid();
  const int keyboard = posix_openpt(O_RDWR | O_NOCTTY);
  grantpt(keyboard);
  unlockpt(keyboard);
  open(ptsname(keyboard), O_RDWR);  // a session's first opened terminal becomes its controlling one
  return keyboard;
}

void TypeCtrlC(int keyboard) {
  EXPECT_EQ(write(keyboard, "\x03", 1), 1);
}

// A user pressed Ctrl-C, or lost the connection to the terminal, and lost everything trained since
// the last checkpoint.
TEST(StopSignalTest, EachIsRememberedAndTheSecondEndsTheProcess) {
  for (const int signal : kStopSignals) {
    ForkedMembers process(1, [signal](int, const Say& say) {
      Remember();
      if (StopSignal() != 0) return 1;
      std::raise(signal);
      TakeOne();
      if (StopSignal() != signal) return 2;
      say("remembered");
      std::raise(signal);
      TakeOne();
      return 0;
    });
    EXPECT_EQ(process.Wait(0), StopExitCode(signal));
    EXPECT_EQ(process.said(0), "remembered");
  }
}

TEST(StopSignalTest, UntilTheyAreToBeRememberedEachEndsTheProcess) {
  for (const int signal : kStopSignals) {
    ForkedMembers process(1, [signal](int, const Say&) {
      std::signal(signal, SIG_DFL);
      EndOnStopSignals();
      std::raise(signal);
      return 1;
    });
    EXPECT_EQ(process.Wait(0), StopExitCode(signal));
  }
}

TEST(StopSignalTest, WhatTheLauncherPassesOnIsNoSecondWish) {
  ForkedMembers process(1, [](int, const Say& say) {
    const int keyboard = OpenTerminal();
    Remember();
    TypeCtrlC(keyboard);
    TakeOne();
    say("typed");
    TakeOne();  // from the parent
    if (StopSignal() != SIGINT) return 1;
    say(", told");
    TypeCtrlC(keyboard);
    TakeOne();
    return 2;
  });
  ASSERT_TRUE(process.WaitFor(0, "typed"));
  process.Signal(0, SIGTERM);
  EXPECT_EQ(process.Wait(0), StopExitCode(SIGINT));
  EXPECT_EQ(process.said(0), "typed, told");
}

TEST(StopSignalTest, TheLaunchersSecondSignalEndsTheProcess) {
  ForkedMembers process(1, [](int, const Say& say) {
    Remember();
    say("ready");
    TakeOne();
    say(", told");
    TakeOne();
    return 1;
  });
  ASSERT_TRUE(process.WaitFor(0, "ready"));
  process.Signal(0, SIGINT);
  ASSERT_TRUE(process.WaitFor(0, "told"));
  process.Signal(0, SIGTERM);
  EXPECT_EQ(process.Wait(0), StopExitCode(SIGTERM));
}

TEST(StopSignalTest, HangUpThatNohupIgnoresRemainsIgnored) {
  ForkedMembers process(1, [](int, const Say&) {
    std::signal(SIGHUP, SIG_IGN);
    EndOnStopSignals();
    RememberStopSignals();
    std::raise(SIGHUP);
    return StopSignal();
  });
  EXPECT_EQ(process.Wait(0), 0);
}

// "My script starts muster-train with & and ends it with kill -INT, which does nothing."
TEST(StopSignalTest, OthersAreHeardEvenWhereAShellIgnoresThem) {
  for (const int signal : {SIGINT, SIGTERM}) {
    ForkedMembers process(1, [signal](int, const Say&) {
      std::signal(signal, SIG_IGN);
      EndOnStopSignals();
      RememberStopSignals();
      std::raise(signal);
      return StopSignal();
    });
    EXPECT_EQ(process.Wait(0), signal);
  }
}

}  // namespace
}  // namespace muster::trainer
