// exec_forever COUNT: calls exec on itself, COUNT times, and does nothing else: most of the time it
// can be seen in the middle of that.
#include <unistd.h>

#include <cstdlib>
#include <string>

int main(int, char** argv) {
  const long left = std::atol(argv[1]);
  if (left > 0) ::execl(argv[0], argv[0], std::to_string(left - 1).c_str(), nullptr);
}
