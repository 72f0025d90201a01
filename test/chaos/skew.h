// By how much a wall clock is wrong, as the environment says:
//
//   SKEW_S         seconds that the wall clock is ahead (below zero: behind)
//   SKEW_PERIOD_S  if given, the clock jumps: for every second period of this length it is as far
//   off the other way
#pragma once

#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long Seconds(const char* name) {
  const char* text = getenv(name);
  return text == NULL ? 0 : atol(text);
}

static long Offset(void) {
  const long skew = Seconds("SKEW_S");
  const long period = Seconds("SKEW_PERIOD_S");
  if (period <= 0) return skew;
  struct timespec since_boot;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &since_boot);
  return since_boot.tv_sec / period % 2 == 0 ? skew : -skew;
}
