// Uses real files, locks and processes: a run that dies is a child that receives SIGKILL.
#include "launcher/run/run_registry.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

using test::TempDir;

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;

RunInfo Info(const std::string& run_id, int since = 0) {
  return {.run_id = run_id,
          .pid = getpid(),
          .script = "train.py",
          .since = std::chrono::sys_seconds(std::chrono::seconds(since))};
}

std::size_t CountFiles(const std::string& dir) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(dir), fs::directory_iterator()));
}

// A child that registers, says so, and does `then` until it is killed.
class RegisteredChild {
 public:
  RegisteredChild(const std::string& dir, const RunInfo& info,
                  const std::function<void(RunRegistration&)>& then) {
    int ready[2];
    if (pipe(ready) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      auto registration = RunRegistration::Register({dir}, info);
      if (registration.ok() && write(ready[1], "r", 1) == 1) then(**registration);
      _exit(1);
    }
    close(ready[1]);
    char byte = 0;
    registered_ = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
  }
  ~RegisteredChild() { Kill(); }

  bool registered() const { return registered_; }

  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  bool registered_ = false;
};

void Pause(RunRegistration&) {
  for (;;) pause();
}

TEST(RunRegistryTest, RunIsListedWhileItLives) {
  const TempDir temp;
  const std::string dir = temp.path() + "/runs";
  {
    const auto registration = RunRegistration::Register({dir}, Info("x"));
    ASSERT_TRUE(registration.ok()) << registration.status();
    struct stat status = {};
    ASSERT_EQ(stat(dir.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
    EXPECT_THAT(ListRuns({dir}).runs, ElementsAre(Info("x")));

    RunInfo running = Info("x");
    running.state = RunState::kRunning;
    running.ranks = "0-3 of 8";
    ASSERT_TRUE((*registration)->Update(running).ok());
    EXPECT_THAT(ListRuns({dir}).runs, ElementsAre(running));
    EXPECT_EQ(CountFiles(dir), 1u);
  }
  EXPECT_EQ(CountFiles(dir), 0u);
}

TEST(RunRegistryTest, KilledRunIsRemovedByWhoeverLists) {
  const TempDir temp;
  RegisteredChild child(temp.path(), Info("killed"), Pause);
  ASSERT_TRUE(child.registered());
  EXPECT_EQ(ListRuns({temp.path()}).runs.size(), 1u);
  // Killed in the middle of an update.
  const std::string file = fs::directory_iterator(temp.path())->path();
  temp.Write(fs::path(file).stem().string() + ".tmp", "{");

  child.Kill();
  EXPECT_EQ(CountFiles(temp.path()), 2u);
  const RunList list = ListRuns({temp.path()});
  EXPECT_THAT(list.runs, IsEmpty());
  EXPECT_THAT(list.warnings, IsEmpty());
  EXPECT_EQ(CountFiles(temp.path()), 0u);
}

TEST(RunRegistryTest, RunThatChangesAllTheTimeIsNeverTakenForDead) {
  const TempDir temp;
  RegisteredChild child(temp.path(), Info("busy"), [](RunRegistration& registration) {
    for (int ranks = 0;; ++ranks) {
      RunInfo info = Info("busy");
      info.ranks = absl::StrCat(ranks);
      if (!registration.Update(info).ok()) return;
    }
  });
  ASSERT_TRUE(child.registered());
  for (int i = 0; i < 2000; ++i) {
    // A directory may hide a file that is renamed while it is read, so one list alone tells little.
    const RunList list = ListRuns({temp.path()});
    EXPECT_LE(list.runs.size(), 1u);
    EXPECT_THAT(list.warnings, IsEmpty());
  }
  bool is_there = false;
  for (int i = 0; i < 1000 && !is_there; ++i) is_there = !ListRuns({temp.path()}).runs.empty();
  EXPECT_TRUE(is_there);
}

TEST(RunRegistryTest, TwoWhoListAtOnceDoNotKeepADeadRunAlive) {
  const TempDir temp;
  const std::string path = temp.Write("dead-12345678.json", WriteRunInfo(Info("dead")));
  const int other = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(flock(other, LOCK_SH), 0);
  EXPECT_THAT(ListRuns({temp.path()}).runs, IsEmpty());
  EXPECT_EQ(CountFiles(temp.path()), 0u);
  close(other);
}

TEST(RunRegistryTest, AgentsOfOneJobOnOneMachineHaveAnEntryEach) {
  const TempDir temp;
  const auto first = RunRegistration::Register({temp.path()}, Info("none", 7));
  const auto second = RunRegistration::Register({temp.path()}, Info("none", 5));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_THAT(ListRuns({temp.path()}).runs, ElementsAre(Info("none", 5), Info("none", 7)))
      << "the oldest first";
}

// "MUSTER_RUNS_DIR named my project by mistake, and muster ps deleted its config.json."
TEST(RunRegistryTest, FileThatNoRunWroteIsLeftAlone) {
  const TempDir temp;
  const std::string path = temp.Write("config.json", "{\"my\": 1}");
  temp.Write("config.tmp", "mine, too");
  const RunList list = ListRuns({temp.path()});
  EXPECT_THAT(list.runs, IsEmpty());
  EXPECT_THAT(list.warnings, ElementsAre("read " + path + ": not what a run writes"));
  EXPECT_EQ(CountFiles(temp.path()), 2u);
}

TEST(RunRegistryTest, BrokenFileOfALivingRunIsSkippedWithAWarning) {
  const TempDir temp;
  const auto registration = RunRegistration::Register({temp.path()}, Info("good"));
  ASSERT_TRUE(registration.ok());
  const std::string path = temp.Write("bad-12345678.json", "{\"pid\": ");
  const int owner = open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(owner, LOCK_EX), 0);
  ASSERT_EQ(mkfifo((temp.path() + "/fifo.json").c_str(), 0600), 0);
  temp.Write("README", "not an entry");

  const RunList list = ListRuns({temp.path()});
  EXPECT_THAT(list.runs, ElementsAre(Info("good")));
  EXPECT_THAT(list.warnings,
              ElementsAre("read " + path + ": not what a run writes",
                          "read " + temp.path() + "/fifo.json: not a file that a run wrote"));
  EXPECT_TRUE(fs::exists(path));
  close(owner);
}

TEST(RunRegistryTest, DirectoryThatOthersControlIsRefused) {
  const TempDir temp;
  fs::create_directory(temp.path() + "/real");
  fs::create_directory_symlink(temp.path() + "/real", temp.path() + "/link");
  fs::create_directory(temp.path() + "/open");
  fs::permissions(temp.path() + "/open", fs::perms::all);
  temp.Write("file", "");
  struct Case {
    const char* name;
    const char* why;
  };
  for (const Case& test :
       {Case{"/link", "it is a symbolic link"}, Case{"/open", "other users can write to it"},
        Case{"/file", "it is not a directory"}}) {
    const std::string dir = temp.path() + test.name;
    const std::string sentence = "use " + dir + ": " + test.why;
    EXPECT_EQ(RunRegistration::Register({dir}, Info("x")).status().message(), sentence);
    EXPECT_THAT(ListRuns({dir}).warnings, ElementsAre(sentence));
  }
  EXPECT_EQ(CountFiles(temp.path() + "/real"), 0u);
}

TEST(RunRegistryTest, DirectoryOfAnotherUserIsRefused) {
  const TempDir temp;
  const std::string dir = temp.path() + "/theirs";
  fs::create_directory(dir);
  if (geteuid() != 0 || chown(dir.c_str(), 12345, 12345) != 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(RunRegistration::Register({dir}, Info("x")).status().message(),
            "use " + dir + ": it belongs to another user");
}

TEST(RunRegistryTest, NextDirectoryServesWhereTheFirstIsNotThere) {
  const TempDir temp;
  const std::string missing = temp.path() + "/no/muster";
  const std::string dir = temp.path() + "/runs";
  {
    const auto registration = RunRegistration::Register({missing, dir}, Info("x"));
    ASSERT_TRUE(registration.ok()) << registration.status();
    const RunList list = ListRuns({missing, dir});
    EXPECT_THAT(list.runs, ElementsAre(Info("x")));
    EXPECT_THAT(list.warnings, IsEmpty());
  }
  EXPECT_EQ(RunRegistration::Register({missing}, Info("x")).status().message(),
            "make " + missing + ": No such file or directory");
  EXPECT_FALSE(RunRegistration::Register({}, Info("x")).ok());
}

TEST(RunRegistryTest, RunIdCannotLeaveTheDirectory) {
  const TempDir temp;
  const auto registration = RunRegistration::Register({temp.path()}, Info("../../x"));
  ASSERT_TRUE(registration.ok()) << registration.status();
  EXPECT_THAT(ListRuns({temp.path()}).runs, ElementsAre(Info("../../x")));
}

// A link that another user could redirect sent every run's entry to that user.
TEST(RunRegistryTest, LinkOfAnotherUserOnTheWayIsNotFollowed) {
  const TempDir temp;
  fs::create_directory(temp.path() + "/real");
  fs::create_directory_symlink(temp.path() + "/real", temp.path() + "/link");
  if (geteuid() != 0 || lchown((temp.path() + "/link").c_str(), 12345, 12345) != 0) {
    GTEST_SKIP() << "needs root";
  }
  const std::string dir = temp.path() + "/link/runs";
  EXPECT_THAT(
      std::string(RunRegistration::Register({dir}, Info("x")).status().message()),
      testing::StartsWith("make " + dir + ": " + temp.path() +
                          "/link is a symbolic link that the user with id 12345 could redirect"));
  EXPECT_EQ(CountFiles(temp.path() + "/real"), 0u);
}

// Whoever can rename the directory puts another in its place.
TEST(RunRegistryTest, RunStaysInItsDirectoryWhateverTheNameComesToMean) {
  const TempDir temp;
  const std::string dir = temp.path() + "/runs";
  auto registration = RunRegistration::Register({dir}, Info("x"));
  ASSERT_TRUE(registration.ok()) << registration.status();
  fs::rename(dir, temp.path() + "/elsewhere");
  fs::create_directory(temp.path() + "/trap");
  fs::create_directory_symlink("trap", dir);
  ASSERT_TRUE((*registration)->Update(Info("x", 1)).ok());
  EXPECT_EQ(CountFiles(temp.path() + "/trap"), 0u);
  EXPECT_THAT(ListRuns({temp.path() + "/elsewhere"}).runs, ElementsAre(Info("x", 1)));
  registration->reset();
  EXPECT_EQ(CountFiles(temp.path() + "/elsewhere"), 0u);
}

}  // namespace
}  // namespace muster::launcher
