// A wall clock that is wrong, for one process: LD_PRELOAD it. The monotonic clock stays right.
//
//   SKEW_S         seconds that the wall clock is ahead (below zero: behind)
//   SKEW_PERIOD_S  if given, the clock jumps: for every second period of this length it is as far
//   off the other way
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
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

int clock_gettime(clockid_t clock, struct timespec* time) {
  const int result = (int)syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    time->tv_sec += Offset();
  return result;
}

int gettimeofday(struct timeval* time, void* zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != NULL) *result = now.tv_sec;
  return now.tv_sec;
}
