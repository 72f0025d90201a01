// The worker of the fault harness (scripts/chaos.sh): records precisely when it ran, and fails on
// command.
//
// Its mark is a mapped file in which it keeps storing CLOCK_MONOTONIC, so the time of its death is
// known to a tenth of a millisecond, even after SIGKILL. All hosts of the harness share the clock,
// so the marks of two rounds can be compared.
//
//   CHAOS_DIR            the directory for marks and command pipes: rank-R.PID.mark,
//                        rank-R.PID.command
//   CHAOS_FINISH         the worker exits with 0 once this file exists
//   CHAOS_TICK_US        microseconds between two stores, 100 by default
//   CHAOS_IGNORE_TERM=1  SIGTERM has no effect
//   CHAOS_STOP_S         seconds that it runs on after SIGTERM, as if it saved something; then it
//   exits
//                        by itself, and its mark says so
//   CHAOS_ESCAPE=1       starts a process that leaves the worker's session and parent, with a mark
//   of
//                        its own
//   MUSTER_BEAT_SOCKET   (from Muster) the receiver of "beat RANK STEP", ten times a second
//
// Commands, one a line: "exit N", "signal N", "hang" (no more beats), "allocate MIB", "flood MIB"
// (lines to stdout; if they cannot be written the worker exits with 9).
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace muster::test {
namespace {

constexpr int kOutputFailed = 9;
constexpr int kNoHarness = 8;
constexpr std::int64_t kMicrosecond = 1000;
constexpr std::int64_t kMillisecond = 1000 * kMicrosecond;
constexpr std::int64_t kBetweenBeats = 100 * kMillisecond;
constexpr std::int64_t kBetweenLooks = 10 * kMillisecond;

// The file's contents; marks.py reads it. Everything but the atomics is written before the file
// gets its name.
struct Mark {
  std::int64_t pid;
  std::int64_t rank;
  std::int64_t world_size;
  std::int64_t restart_count;
  std::int64_t first_ns;
  std::atomic<std::int64_t> last_ns;
  // When it exited by itself on request; 0: it did not.
  std::atomic<std::int64_t> left_ns{0};
};

std::int64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// Set by SIGTERM with CHAOS_STOP_S.
volatile std::sig_atomic_t asked_to_stop = 0;

std::string Text(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::int64_t Number(const char* name) {
  return std::atoll(Text(name).c_str());
}

std::string PathOf(const char* suffix) {
  return Text("CHAOS_DIR") + "/rank-" + Text("RANK") + "." + std::to_string(getpid()) + suffix;
}

[[noreturn]] void Abandon(const std::string& attempt) {
  std::fprintf(stderr, "chaos_worker: %s: %s\n", attempt.c_str(), std::strerror(errno));
  _exit(kNoHarness);
}

Mark* MakeMark(const char* suffix) {
  const std::string path = PathOf(suffix);
  const std::string unnamed = path + ".new";
  const int file = open(unnamed.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(Mark)) != 0) Abandon("make " + unnamed);
  void* memory = mmap(nullptr, sizeof(Mark), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) Abandon("map " + unnamed);
  close(file);
  const std::int64_t now = Now();
  auto* mark = new (memory) Mark{
      getpid(), Number("RANK"), Number("WORLD_SIZE"), Number("TORCHELASTIC_RESTART_COUNT"), now,
      now};
  if (rename(unnamed.c_str(), path.c_str()) != 0) Abandon("name " + path);
  return mark;
}

// Lives exactly as long as the harness's processes.
[[noreturn]] void LiveAsEscapee() {
  setsid();
  if (fork() != 0) _exit(0);
  Mark* mark = MakeMark(".escaped.mark");
  for (;;) {
    mark->last_ns = Now();
    usleep(1000);
  }
}

// Sends beats while the worker makes progress. Without a socket from Muster it sends none.
class Heart {
 public:
  Heart() {
    const std::string path = Text("MUSTER_BEAT_SOCKET");
    address_.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof(address_.sun_path)) return;
    std::memcpy(address_.sun_path, path.data(), path.size());
    socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  }
  void Beat() {
    if (socket_ < 0 || stopped_) return;
    const std::string beat = "beat " + Text("RANK") + " " + std::to_string(step_++);
    // If the agent does not listen now, it misses one beat.
    (void)!sendto(socket_, beat.data(), beat.size(), 0, reinterpret_cast<sockaddr*>(&address_),
                  sizeof(address_));
  }
  void Stop() { stopped_ = true; }

 private:
  sockaddr_un address_{};
  int socket_ = -1;
  bool stopped_ = false;
  std::int64_t step_ = 0;
};

// On its own thread: a full pipe must not block the mark.
void Flood(std::int64_t mebibytes) {
  const std::string lines = [] {
    std::string text;
    while (text.size() < (1 << 20)) text += "a line of a worker that says far too much\n";
    return text;
  }();
  for (std::int64_t i = 0; i < mebibytes; ++i) {
    for (std::size_t done = 0; done < lines.size();) {
      const ssize_t written = write(STDOUT_FILENO, lines.data() + done, lines.size() - done);
      if (written < 0 && errno != EINTR) _exit(kOutputFailed);
      done += static_cast<std::size_t>(std::max<ssize_t>(written, 0));
    }
  }
}

// On its own thread as well: the mark records when the kernel kills us. Memory is filled, because
// only touched pages count.
void Allocate(std::int64_t mebibytes) {
  static std::vector<char> memory;
  memory.assign(static_cast<std::size_t>(mebibytes) << 20, 'x');
}

void Obey(const std::string& line, Heart& heart) {
  std::istringstream words(line);
  std::string verb;
  std::int64_t number = 0;
  words >> verb >> number;
  if (verb == "exit") _exit(static_cast<int>(number));
  if (verb == "signal") raise(static_cast<int>(number));
  if (verb == "hang") heart.Stop();
  if (verb == "flood") std::thread(Flood, number).detach();
  if (verb == "allocate") std::thread(Allocate, number).detach();
}

void ObeyAll(int commands, Heart& heart) {
  char text[256];
  const ssize_t length = read(commands, text, sizeof(text));
  if (length <= 0) return;
  std::istringstream lines(std::string(text, static_cast<std::size_t>(length)));
  for (std::string line; std::getline(lines, line);) Obey(line, heart);
}

// Opened for writing, too, so that the pipe does not end with its first writer.
int OpenCommands() {
  const std::string path = PathOf(".command");
  if (mkfifo(path.c_str(), 0600) != 0) Abandon("make " + path);
  const int commands = open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (commands < 0) Abandon("open " + path);
  return commands;
}

int Main() {
  if (Text("CHAOS_IGNORE_TERM") == "1") std::signal(SIGTERM, SIG_IGN);
  const std::int64_t saving_takes = Number("CHAOS_STOP_S") * 1000 * kMillisecond;
  if (saving_takes > 0) std::signal(SIGTERM, [](int) { asked_to_stop = 1; });
  if (Text("CHAOS_ESCAPE") == "1" && fork() == 0) LiveAsEscapee();
  // The pipe first: a process that sees the mark may write a command.
  const int commands = OpenCommands();
  Heart heart;
  heart.Beat();
  Mark* mark = MakeMark(".mark");
  const std::string finish = Text("CHAOS_FINISH");
  const timespec tick{0, std::max<std::int64_t>(Number("CHAOS_TICK_US"), 100) * kMicrosecond};
  for (std::int64_t next_beat = 0, next_look = 0, saved = 0;;) {
    const std::int64_t now = Now();
    mark->last_ns = now;
    if (asked_to_stop != 0 && saved == 0) saved = now + saving_takes;
    if (saved != 0 && now >= saved) {
      mark->left_ns = now;
      return 0;
    }
    if (now >= next_beat) {
      heart.Beat();
      next_beat = now + kBetweenBeats;
    }
    if (now >= next_look) {
      if (access(finish.c_str(), F_OK) == 0) return 0;
      next_look = now + kBetweenLooks;
    }
    pollfd waiting{commands, POLLIN, 0};
    if (ppoll(&waiting, 1, &tick, nullptr) > 0) ObeyAll(commands, heart);
  }
}

}  // namespace
}  // namespace muster::test

int main() {
  return muster::test::Main();
}
