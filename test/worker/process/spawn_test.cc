// What a spawned process gets, and the error if it cannot be started, with real processes.
#include "worker/process/spawn.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <sstream>
#include <tuple>

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "test/support/temp_dir.h"

namespace muster::worker {
namespace {

using test::ReadAll;
using test::TempDir;

const char kPath[] = "PATH=/usr/local/bin:/usr/bin:/bin";

struct Ran {
  pid_t pid = 0;
  int wait_status = 0;
  std::string output;
};

// Runs a program until it exits.
Ran RunToEnd(std::vector<std::string> argv, std::vector<std::string> env = {kPath}) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  base::UniqueFd read_end(ends[0]);
  base::UniqueFd write_end(ends[1]);
  SpawnRequest request;
  request.argv = std::move(argv);
  request.env = std::move(env);
  request.stdout_fd = write_end.get();
  const auto spawned = Spawn(request);
  EXPECT_TRUE(spawned.ok()) << spawned.status();
  if (!spawned.ok()) return {};
  write_end.reset();
  Ran ran;
  ran.pid = spawned->pid;
  char buffer[4096];
  for (ssize_t count; (count = ::read(read_end.get(), buffer, sizeof buffer)) > 0;) {
    ran.output.append(buffer, static_cast<std::size_t>(count));
  }
  ::waitpid(spawned->pid, &ran.wait_status, 0);
  return ran;
}

absl::Status SpawnError(std::vector<std::string> argv) {
  SpawnRequest request;
  request.argv = std::move(argv);
  const auto spawned = Spawn(request);
  EXPECT_FALSE(spawned.ok());
  errno = 0;
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a process is left behind";
  EXPECT_EQ(errno, ECHILD);
  return spawned.status();
}

// A mask of /proc/PID/status such as SigIgn, without glibc's two internal signals, which cannot be
// changed and may have been ignored by our parent.
std::uint64_t SignalSet(const std::string& status, const std::string& name) {
  const std::size_t at = status.find(name + ":");
  EXPECT_NE(at, std::string::npos) << status;
  constexpr std::uint64_t kOfGlibc = std::uint64_t{3} << 31;
  return std::stoull(status.substr(at + name.size() + 1), nullptr, 16) & ~kOfGlibc;
}

// Sets a signal's disposition during a test.
class ScopedDisposition {
 public:
  ScopedDisposition(int signal, void (*handler)(int)) : signal_(signal) {
    struct sigaction action = {};
    action.sa_handler = handler;
    ::sigaction(signal, &action, &before_);
  }
  ~ScopedDisposition() { ::sigaction(signal_, &before_, nullptr); }

 private:
  const int signal_;
  struct sigaction before_;
};

TEST(SpawnTest, ProcessGetsItsArgumentsAndExactlyItsEnvironment) {
  const Ran ran =
      RunToEnd({"sh", "-c", "echo \"$1|$2\"; env", "name", "a b", ""}, {kPath, "RANK=3"});
  EXPECT_TRUE(ran.output.starts_with("a b|\n")) << ran.output;
  EXPECT_TRUE(absl::StrContains(ran.output, "RANK=3\n"));
  EXPECT_FALSE(absl::StrContains(ran.output, "TEST_TMPDIR")) << "ours must not leak into it";
}

TEST(SpawnTest, ProcessLeadsAGroupAndASessionOfItsOwn) {
  // Fields 1, 5 and 6 of stat: pid, process group, session.
  const Ran ran = RunToEnd({"cut", "-d ", "-f1,5,6", "/proc/self/stat"});
  std::ostringstream expected;
  expected << ran.pid << ' ' << ran.pid << ' ' << ran.pid << '\n';
  EXPECT_EQ(ran.output, expected.str());
}

TEST(SpawnTest, NoSignalIsBlockedOrIgnored) {
  const ScopedDisposition pipe(SIGPIPE, SIG_IGN);
  const ScopedDisposition user(SIGUSR1, SIG_IGN);
  const ScopedDisposition term(SIGTERM, [](int) {});
  const Ran ran = RunToEnd({"cat", "/proc/self/status"});
  EXPECT_EQ(SignalSet(ran.output, "SigBlk"), 0u);
  EXPECT_EQ(SignalSet(ran.output, "SigIgn"), 0u);
  EXPECT_EQ(SignalSet(ran.output, "SigCgt"), 0u);
}

TEST(SpawnTest, OurOwnSignalMaskIsAsBefore) {
  RunToEnd({"true"});
  sigset_t now;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
  EXPECT_EQ(::sigismember(&now, SIGTERM), 0);
}

// "nohup torchrun dies when I close the terminal."
TEST(SpawnTest, IgnoredHangupStaysIgnored) {
  const ScopedDisposition hangup(SIGHUP, SIG_IGN);
  const Ran ran = RunToEnd({"cat", "/proc/self/status"});
  EXPECT_EQ(SignalSet(ran.output, "SigIgn"), std::uint64_t{1} << (SIGHUP - 1));
}

TEST(SpawnTest, ExitStatusIsKeptThoughTheAgentWasStartedWithChildSignalIgnored) {
  const ScopedDisposition child(SIGCHLD, SIG_IGN);
  const Ran ran = RunToEnd({"sh", "-c", "exit 7"});
  EXPECT_TRUE(WIFEXITED(ran.wait_status));
  EXPECT_EQ(WEXITSTATUS(ran.wait_status), 7);
}

TEST(SpawnTest, NoDescriptorLeaksIntoTheProcess) {
  // Opened without close-on-exec, as a library in our process might.
  const base::UniqueFd careless(::open("/dev/null", O_RDONLY));
  const base::UniqueFd high(::dup2(careless.get(), 200));
  const Ran ran = RunToEnd({"ls", "/proc/self/fd"});
  EXPECT_EQ(ran.output, "0\n1\n2\n3\n") << "3 is the directory that ls reads";
}

TEST(SpawnTest, StandardDescriptorsMayBeExchanged) {
  // The process's stderr is our pipe, although only stdout was set to it.
  TempDir dir;
  const base::UniqueFd file(::open(dir.Path("err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  SpawnRequest request;
  request.argv = {"sh", "-c", "echo to stderr >&2"};
  request.env = {kPath};
  request.stdout_fd = STDERR_FILENO;
  request.stderr_fd = file.get();
  const auto spawned = Spawn(request);
  ASSERT_TRUE(spawned.ok()) << spawned.status();
  ::waitpid(spawned->pid, nullptr, 0);
  EXPECT_EQ(ReadAll(dir.Path("err")), "to stderr\n");
}

TEST(SpawnTest, FurtherDescriptorsAreThreeAndFourWhateverTheirNumbersAreHere) {
  const TempDir dir;
  const base::UniqueFd first(::open(dir.Write("a", "first ").c_str(), O_RDONLY | O_CLOEXEC));
  const base::UniqueFd second(::open(dir.Write("b", "second ").c_str(), O_RDONLY | O_CLOEXEC));
  // Swapped, in case they are 3 and 4 by chance.
  for (const auto& [three, four, text] :
       {std::tuple(first.get(), second.get(), "first second 0 1 2 3 4 "),
        std::tuple(second.get(), first.get(), "second first 0 1 2 3 4 ")}) {
    ::lseek(first.get(), 0, SEEK_SET);
    ::lseek(second.get(), 0, SEEK_SET);
    const std::string path = dir.Write("out", "");
    const base::UniqueFd out(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    SpawnRequest request;
    request.argv = {
        "sh", "-c",
        "cat <&3; cat <&4; cd /proc/$$/fd; for d in *; do [ -L $d ] && printf '%s ' $d; done; :"};
    request.env = {kPath};
    request.stdout_fd = out.get();
    request.more_fds = {three, four};
    const auto spawned = Spawn(request);
    ASSERT_TRUE(spawned.ok()) << spawned.status();
    ::waitpid(spawned->pid, nullptr, 0);
    EXPECT_EQ(ReadAll(path), text);
  }
}

TEST(SpawnTest, SlotsGiveTheSameAndHoldNothingOpen) {
  const auto slots = StdioSlots::Take();
  ASSERT_TRUE(slots.has_value());
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const base::UniqueFd read_end(ends[0]);
  base::UniqueFd write_end(ends[1]);
  SpawnRequest request;
  request.argv = {"sh", "-c", "echo out; echo err >&2; exec ls /proc/self/fd"};
  request.env = {kPath};
  request.stdout_fd = write_end.get();
  request.stderr_fd = write_end.get();
  request.slots = &*slots;
  const auto spawned = Spawn(request);
  ASSERT_TRUE(spawned.ok()) << spawned.status();
  write_end.reset();
  std::string output;
  char buffer[4096];
  // Until the end, when no process holds the write end any more.
  for (ssize_t count; (count = ::read(read_end.get(), buffer, sizeof buffer)) > 0;) {
    output.append(buffer, static_cast<std::size_t>(count));
  }
  ::waitpid(spawned->pid, nullptr, 0);
  EXPECT_EQ(output, "out\nerr\n0\n1\n2\n3\n");
}

// With a thousand workers the agent has thousands of descriptors, and no worker may get one.
TEST(SpawnTest, OurOwnDescriptorsStayOpen) {
  const base::UniqueFd high(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 900));
  ASSERT_TRUE(high.valid());
  EXPECT_EQ(RunToEnd({"ls", "/proc/self/fd"}).output, "0\n1\n2\n3\n");
  EXPECT_NE(::fcntl(high.get(), F_GETFD), -1);
}

TEST(SpawnTest, CommonEnvironmentComesBesideTheOwn) {
  SpawnRequest request;
  TempDir dir;
  const base::UniqueFd file(::open(dir.Path("out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  request.argv = {"/usr/bin/env"};
  request.common_env = std::make_shared<const std::vector<std::string>>(
      std::vector<std::string>{"WORLD_SIZE=2", "MASTER_PORT=29500"});
  request.env = {"RANK=1"};
  request.stdout_fd = file.get();
  const auto spawned = Spawn(request);
  ASSERT_TRUE(spawned.ok()) << spawned.status();
  ::waitpid(spawned->pid, nullptr, 0);
  EXPECT_EQ(ReadAll(dir.Path("out")), "WORLD_SIZE=2\nMASTER_PORT=29500\nRANK=1\n");
}

TEST(SpawnTest, MissingProgram) {
  const absl::Status status = SpawnError({"./train"});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "./train: No such file or directory");
}

TEST(SpawnTest, FileThatIsNotExecutable) {
  TempDir dir;
  const std::string data = dir.Write("data.txt", "1 2 3\n", 0644);
  const absl::Status status = SpawnError({data});
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(status.message(), data + ": Permission denied (not executable)");
}

TEST(SpawnTest, TextFileWithoutAFirstLineForTheKernel) {
  TempDir dir;
  const std::string text = dir.Write("train", "print('hello')\n", 0755);
  EXPECT_EQ(SpawnError({text}).message(),
            text + ": Exec format error (neither a program nor a script that starts with #!)");
}

TEST(SpawnTest, ScriptWhoseInterpreterIsMissing) {
  TempDir dir;
  const std::string script = dir.Write("train", "#!/nowhere/python\n", 0755);
  EXPECT_EQ(SpawnError({script}).message(), script + ": interpreter /nowhere/python is missing");
}

TEST(SpawnTest, ArgumentsThatAreTooLong) {
  EXPECT_EQ(SpawnError({"/bin/echo", std::string(256 * 1024, 'x')}).message(),
            "/bin/echo: Argument list too long");
}

TEST(SpawnTest, NoProgramAtAll) {
  EXPECT_FALSE(Spawn({}).ok());
}

TEST(SpawnTest, ProcessRunsOnTheGivenCpusOnly) {
  cpu_set_t ours;
  CPU_ZERO(&ours);
  ASSERT_EQ(::sched_getaffinity(0, sizeof ours, &ours), 0);
  int last = CPU_SETSIZE - 1;
  while (last > 0 && !CPU_ISSET(last, &ours)) --last;
  TempDir dir;
  const base::UniqueFd file(::open(dir.Path("out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  SpawnRequest request;
  // A CPU that no machine has, beyond cpu_set_t's size: the kernel uses those that exist.
  request.cpus = {5000, last};
  request.argv = {"grep", "Cpus_allowed_list", "/proc/self/status"};
  request.env = {kPath};
  request.stdout_fd = file.get();
  const auto spawned = Spawn(request);
  ASSERT_TRUE(spawned.ok()) << spawned.status();
  ::waitpid(spawned->pid, nullptr, 0);
  EXPECT_EQ(ReadAll(dir.Path("out")), "Cpus_allowed_list:\t" + std::to_string(last) + "\n");
}

TEST(SpawnTest, CpusThatTheMachineDoesNotHave) {
  SpawnRequest request;
  request.argv = {"true"};
  request.cpus = {5000, 5001};
  EXPECT_EQ(Spawn(request).status().message(), "bind to CPUs 5000,5001: Invalid argument");
  request.cpus = {-1};
  EXPECT_FALSE(Spawn(request).ok());
}

}  // namespace
}  // namespace muster::worker
