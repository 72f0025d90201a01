// Runs a program whose wall clock jumps and whose monotonic clock does not, as clock_skew.c, where
// nothing can be preloaded: in programs that are linked statically or do not use the C library, as
// etcd and whatever else is written in Go.
//
// usage: SKEW_S=N [SKEW_PERIOD_S=N] clock_jumps PROGRAM [ARGUMENT]...
//
// The program takes the place of this process. A child of it traces it: it hides the kernel's
// vDSO, so that asking for the time is a system call, and answers that call, which a filter
// (seccomp) stops, in the kernel's stead. Only for x86-64.
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/chaos/skew.h"

// Where the vector's entries are: argc, arguments, NULL, environment, NULL, pairs of numbers.
static void HideVdso(pid_t pid) {
  struct user_regs_struct registers;
  if (ptrace(PTRACE_GETREGS, pid, NULL, &registers) != 0) return;
  unsigned long at = registers.rsp;
  const unsigned long argc = (unsigned long)ptrace(PTRACE_PEEKDATA, pid, at, NULL);
  at += (argc + 2) * sizeof(long);
  while (ptrace(PTRACE_PEEKDATA, pid, at, NULL) != 0) at += sizeof(long);
  at += sizeof(long);
  for (long type; (type = ptrace(PTRACE_PEEKDATA, pid, at, NULL)) != AT_NULL;
       at += 2 * sizeof(long)) {
    if (type == AT_SYSINFO_EHDR) ptrace(PTRACE_POKEDATA, pid, at, (void*)AT_IGNORE);
  }
}

static void AnswerClockGettime(pid_t pid) {
  struct user_regs_struct registers;
  if (ptrace(PTRACE_GETREGS, pid, NULL, &registers) != 0) return;
  struct timespec time;
  syscall(SYS_clock_gettime, registers.rdi, &time);
  time.tv_sec += Offset();
  const struct iovec mine = {&time, sizeof time};
  const struct iovec its = {(void*)registers.rsi, sizeof time};
  const int written = process_vm_writev(pid, &mine, 1, &its, 1, 0) == (ssize_t)sizeof time;
  registers.orig_rax = (unsigned long)-1;  // the kernel does nothing
  registers.rax = written ? 0 : (unsigned long)-EFAULT;
  ptrace(PTRACE_SETREGS, pid, NULL, &registers);
}

static void Trace(pid_t program, int ready) {
  const long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE |
                       PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;
  // Without a word the program does not begin.
  if (ptrace(PTRACE_SEIZE, program, NULL, options) != 0) _exit(1);
  if (write(ready, "", 1) != 1) _exit(1);
  close(ready);
  pid_t pid;
  int status;
  while ((pid = waitpid(-1, &status, __WALL)) > 0) {
    if (!WIFSTOPPED(status)) continue;
    const int signal = WSTOPSIG(status);
    const int event = status >> 16;
    if (event == PTRACE_EVENT_STOP && signal != SIGTRAP) {
      ptrace(PTRACE_LISTEN, pid, NULL, NULL);  // SIGSTOP has stopped it: so it stays
      continue;
    }
    if (event == PTRACE_EVENT_EXEC) HideVdso(pid);
    if (event == PTRACE_EVENT_SECCOMP) AnswerClockGettime(pid);
    ptrace(PTRACE_CONT, pid, NULL, (void*)(long)(event == 0 ? signal : 0));
  }
  _exit(0);
}

// clock_gettime of a wall clock is for the tracer, all else for the kernel.
static int Filter(void) {
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_REALTIME, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_REALTIME_COARSE, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
  };
  const struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int main(int argc, char** argv) {
  int ready[2];
  if (argc < 2 || pipe(ready) != 0) return 2;
  const pid_t program = getpid();
  const pid_t tracer = fork();
  if (tracer < 0) return 2;
  if (tracer == 0) {
    close(ready[0]);
    Trace(program, ready[1]);
  }
  close(ready[1]);
  prctl(PR_SET_PTRACER, tracer, 0, 0, 0);
  char word;
  if (read(ready[0], &word, 1) != 1) {
    fputs("clock_jumps: this machine does not let us trace\n", stderr);
    return 1;
  }
  close(ready[0]);
  if (!Filter()) {
    perror("clock_jumps: seccomp");
    return 1;
  }
  execvp(argv[1], argv + 1);
  perror(argv[1]);
  return 127;
}
