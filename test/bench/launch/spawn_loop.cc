// spawn_loop COUNT PROGRAM [ARGUMENT...]: starts the program COUNT times and waits for all of them.
// The lower bound for anything that starts processes: it sets nothing up for them, and neither
// watches nor reports.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int argc, char** argv) {
  const int count = argc < 3 ? 0 : std::atoi(argv[1]);
  if (count < 1) {
    std::fprintf(stderr, "usage: spawn_loop COUNT PROGRAM [ARGUMENT...]\n");
    return 2;
  }
  for (int i = 0; i < count; ++i) {
    if (const int error = posix_spawn(nullptr, argv[2], nullptr, nullptr, argv + 2, environ)) {
      std::fprintf(stderr, "spawn_loop: start %s: %s\n", argv[2], std::strerror(error));
      return 1;
    }
  }
  int failed = 0;
  for (int status = 0; wait(&status) > 0;) failed += status != 0;
  return failed == 0 ? 0 : 1;
}
