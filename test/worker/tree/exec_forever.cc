// exec_forever COUNT: execs itself COUNT times and does nothing else, so most of the time it is in
// the middle of an exec.
#include <unistd.h>

#include <cstdlib>
#include <string>

int main(int, char** argv) {
  const long left = std::atol(argv[1]);
  if (left > 0) ::execl(argv[0], argv[0], std::to_string(left - 1).c_str(), nullptr);
}
