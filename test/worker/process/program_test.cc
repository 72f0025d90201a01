#include "worker/process/spawn.h"

#include <unistd.h>

#include <cerrno>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace muster::worker {
namespace {

using test::TempDir;

TEST(ProgramTest, NameWithASlashIsTakenAsItIs) {
  EXPECT_EQ(*FindProgram("./nowhere/train", "/bin"), "./nowhere/train");
}

TEST(ProgramTest, PathIsSearchedInOrderAndSkipsWhatCannotRun) {
  TempDir dir;
  std::filesystem::create_directories(dir.Path("a/train"));  // a directory is not a program
  std::filesystem::create_directory(dir.Path("b"));
  std::filesystem::create_directory(dir.Path("c"));
  dir.Write("c/train", "#!/bin/sh\n", 0755);
  const std::string path = dir.Path("a") + ":" + dir.Path("b") + ":" + dir.Path("c");
  EXPECT_EQ(*FindProgram("train", path.c_str()), dir.Path("c/train"));
}

TEST(ProgramTest, UnsetPathStillFindsTheShell) {
  EXPECT_EQ(*FindProgram("sh", nullptr), "/bin/sh");
}

TEST(ProgramTest, NameThatIsNowhereInPath) {
  const absl::Status status = FindProgram("no-such-program", "/bin:/usr/bin").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "no-such-program: not found in PATH");
  EXPECT_FALSE(FindProgram("", "/bin").ok());
}

TEST(ProgramTest, OnlyAFileThatIsNotExecutableInPath) {
  TempDir dir;
  dir.Write("train", "#!/bin/sh\n", 0644);
  const absl::Status status = FindProgram("train", dir.Path("").c_str()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(status.message(), dir.Path("/train") + ": Permission denied (not executable)");
}

TEST(ProgramTest, ErrorsThatShareAnErrnoAreToldApart) {
  TempDir dir;
  const std::string script = dir.Write("script", "#! /usr/bin/pyhton3 -u\n", 0755);
  const std::string windows = dir.Write("windows", "#!/bin/sh\r\n", 0755);
  const std::string data = dir.Write("data", "1 2 3\n", 0644);
  EXPECT_EQ(ExecError("./train", ENOENT).message(), "./train: No such file or directory");
  EXPECT_EQ(ExecError(script, ENOENT).message(),
            script + ": interpreter /usr/bin/pyhton3 is missing");
  EXPECT_EQ(ExecError(windows, ENOENT).message(),
            windows + ": the first line ends in a carriage return (saved with Windows line ends?)");
  EXPECT_EQ(ExecError(data, EACCES).message(), data + ": Permission denied (not executable)");
  EXPECT_EQ(ExecError("/", EACCES).message(), "/: Is a directory");
  EXPECT_EQ(ExecError(data, E2BIG).message(), data + ": Argument list too long");
}

}  // namespace
}  // namespace muster::worker
