// Which processes get a signal that is meant for a worker.
//
// A worker that saves a checkpoint on a stop signal still needs its children: data loader
// processes, an ffmpeg, a helper that uploads logs. So only the worker gets the signal, not its
// children. The exception is a worker that is only a wrapper, a shell script or `timeout 1h python
// train.py`: then the program that it waits for matters. From the worker downwards, there are three
// kinds of program:
//
// A shell gets the signal, so that it exits or runs its trap, and does not continue with the
// script's next command. So do those it waits for, with or without a trap:
//  - Its foreground child. The shell runs its trap only after that has exited, so nothing else
//    would signal it. A shell starts nothing else while it waits, so that is its youngest child;
//    the others are helpers of the script and left alone.
//  - If the youngest is a background job (`prog & wait`), all of its background jobs, unless the
//    shell catches the signal: `wait` then returns at once, and passing the signal on is the
//    purpose of such a trap. With ours as well the program would get two, and a second one often
//    means "now, without saving". (A shell that waits catches SIGINT even without a trap, but exits
//    on it, and its leftovers are signalled later; see ladder_runner.h.) A shell without job
//    control starts these jobs with SIGINT and SIGQUIT ignored (POSIX, 2.11 Signals and Error
//    Handling). That identifies them, and is why they get SIGTERM in place of a signal that they
//    ignore. A program that ignores both while it waits, as system(3) does, is told apart by its
//    children, which would have inherited that.
//  - One member of a pipeline: the first with a handler for the signal, else the first; filters
//    (`zcat`, `gzip`, `sort`) count as neither. The tee of `python train.py | tee log` is left
//    alone: the program needs it for its output, and it exits at the end of its input. So is the
//    producer of `producer | python train.py`, whose death would end the program's input early.
//    Python programs without handlers of their own all get SIGINT, as from a terminal: each has
//    Python's.
// A shell that itself reads its foreground child's output, as in text=$(python train.py), does not
// get the signal: the program could no longer write. The script then continues after the child's
// exit.
//
// A waiter is a program that is known to start another, wait for it and exit when it does: time,
// timeout, strace, nsys, conda run. Only the program that it waits for gets the signal. The waiter
// would die and lose its report (nsys), ignore it (time), or pass it on by itself, even to
// everything below (timeout, dumb-init). Programs that exec another, such as env, nice and numactl,
// never show up here.
//
// Any other program gets the signal, and nothing below it does. The exception: SIGINT and SIGQUIT
// go to the child of a program that ignores both and waits for it, as system(3), called by
// os.system and Perl, relies on the terminal to signal the child.
#pragma once

#include <functional>
#include <vector>

#include "worker/process/process_info.h"
#include "worker/process/process_state.h"

namespace muster::worker {

enum class SignalPurpose {
  kStop,    // make them exit
  kNotice,  // SIGUSR1, for programs that handle it; a shell without a trap would die of it
};

struct SignalTarget {
  ProcessInfo process;
  int signal = 0;
};

// Returns the traits of a live process.
using TraitsLookup = std::function<ProcessTraits(pid_t)>;

// `tree` has the live processes, including `root` and its descendants. Parents come before their
// children in the result: a shell whose child died of SIGINT before it got the signal would
// continue its script. Empty only for kNotice.
std::vector<SignalTarget> SignalTargets(const std::vector<ProcessInfo>& tree,
                                        const ProcessInfo& root, int signal, SignalPurpose purpose,
                                        const TraitsLookup& traits_of);

}  // namespace muster::worker
