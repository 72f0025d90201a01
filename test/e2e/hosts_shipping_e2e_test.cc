// Hosts without Muster, or with another build of it, get the one that starts them.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/process_scan.h"
#include "test/support/temp_dir.h"

namespace muster::test {
namespace {

namespace fs = std::filesystem;

// A host is a shell with a home and a PATH of its own, in which this program cannot be found at its
// path; programs in HOST/bin change its behaviour.
class HostsShippingTest : public E2eTest {
 protected:
  HostsShippingTest() {
    fs::create_directories(Path("host/bin"));
    fs::create_directories(Path("host/home"));
    Write("shell",
          "#!/bin/sh\nexport HOME=" + Path("host/home") + " PATH=" + Path("host/bin") +
              ":/usr/bin:/bin\nunset XDG_CACHE_HOME\n" +
              "exec sh -c \"$(printf %s \"$1\" | sed s,MUSTER,/nowhere,g)\"\n",
          0755);
    // The wrapper recognizes the command by this name.
    fs::create_directories(Path("MUSTER"));
    fs::copy_file(MusterPath(), Path("MUSTER/muster"));
  }

  // Starts a job on the host.
  Command StartThere(std::vector<std::string> flags = {}) {
    std::vector<std::string> argv = Joined({Path("MUSTER/muster"), "run", "--hosts=first",
                                            "--launch-with=" + Path("shell") + " {command} {host}"},
                                           flags);
    argv.insert(argv.end(), {"--no-python", "sh", "-c", "echo rank $RANK runs"});
    return Command(argv, Environment());
  }

  // The files in the host's cache.
  std::vector<fs::path> Cached() const {
    std::vector<fs::path> found;
    std::error_code ignored;
    for (const auto& entry :
         fs::recursive_directory_iterator(Path("host/home/.cache/muster"), ignored)) {
      if (entry.is_regular_file()) found.push_back(entry.path());
    }
    return found;
  }
};

TEST_F(HostsShippingTest, HostWithoutMusterIsGivenItOnce) {
  Command first = StartThere();
  EXPECT_EQ(first.Wait(), 0) << first.err();
  EXPECT_EQ(first.out(), "[default0]:rank 0 runs\n");
  const std::vector<fs::path> cached = Cached();
  ASSERT_EQ(cached.size(), 1u);
  EXPECT_EQ(fs::status(cached[0]).permissions(), fs::perms::owner_all);
  EXPECT_TRUE(ReadAll(cached[0]) == ReadAll(Path("MUSTER/muster")));

  // The second time nothing is sent: the host could not accept it.
  Write("host/bin/gzip", "#!/bin/sh\nexit 1\n", 0755);
  Command second = StartThere();
  EXPECT_EQ(second.Wait(), 0) << second.err();
  EXPECT_EQ(second.out(), "[default0]:rank 0 runs\n");
  EXPECT_EQ(Cached(), cached);
  ExpectNothingLeft();
}

// A byte that changed on the way must not become part of a program.
TEST_F(HostsShippingTest, ProgramThatComesDamagedIsNotKept) {
  Write("host/bin/gzip", "#!/bin/sh\n/bin/gzip \"$@\"; echo\n", 0755);
  Command run = StartThere();
  EXPECT_EQ(run.Wait(), 3) << run.err();
  EXPECT_TRUE(Contains(run.err(),
                       "muster run: first cannot be reached: muster could not be put "
                       "into " +
                           Path("host/home/.cache/muster/")));
  EXPECT_TRUE(Cached().empty());
  ExpectNothingLeft();
}

// The only message was "first cannot be reached: muster could not be put into ...".
TEST_F(HostsShippingTest, HostThatCannotTakeItSaysWhy) {
  Write("host/bin/gzip", "#!/bin/sh\necho 'gzip: stdout: No space left on device' >&2\nexit 1\n",
        0755);
  Command full = StartThere();
  EXPECT_EQ(full.Wait(), 3) << full.err();
  EXPECT_TRUE(Contains(full.err(), ": gzip: stdout: No space left on device\n"));

  // As on a file system that is mounted noexec.
  fs::remove(Path("host/bin/gzip"));
  Write("host/bin/chmod", "#!/bin/sh\n", 0755);
  Command noexec = StartThere();
  EXPECT_EQ(noexec.Wait(), 3) << noexec.err();
  EXPECT_TRUE(Contains(noexec.err(), ": it cannot be run there (noexec?): Permission denied\n"));
  EXPECT_TRUE(Cached().empty());

  fs::remove(Path("host/bin/chmod"));
  fs::remove_all(Path("host/home/.cache"));
  Write("host/home/.cache", "");
  Command file = StartThere();
  EXPECT_EQ(file.Wait(), 3) << file.err();
  EXPECT_TRUE(Contains(file.err(), ": mkdir: cannot create directory "));
  EXPECT_TRUE(Contains(file.err(), "Not a directory\n"));
  ExpectNothingLeft();
}

// Two containers shared a home directory, their shells had the same pid, and one download broke
// off, which left half a program in the cache: "first cannot be reached: muster: which x86_64?", in
// this run and in all later ones.
TEST_F(HostsShippingTest, HostThatSharesAHomeWritesIntoNobodysFile) {
  Command probe({"unshare", "--pid", "--fork", "true"}, Environment());
  if (probe.Wait() != 0) GTEST_SKIP() << "no process namespaces here";
  // The second starts to fetch once the first has verified its file, and breaks off.
  const std::string wait = "; do sleep 0.02; done\n";
  Write("container",
        "#!/bin/sh\n[ $2 = first ] || until [ -e " + Path("checked") + " ]" + wait +
            "exec unshare --pid --fork --kill-child -- " + Path("shell") + " \"$1\"\n",
        0755);
  Write("host/bin/sha256sum",
        "#!/bin/sh\nsum=$(/usr/bin/sha256sum)\ntouch " + Path("checked") + "\nuntil [ -e " +
            Path("fetches") + " ]" + wait + "echo \"$sum\"\n",
        0755);
  Write("host/bin/gzip",
        "#!/bin/sh\n[ -e " + Path("checked") + " ] || exec /bin/gzip \"$@\"\ntouch " +
            Path("fetches") + "\nuntil [ -x " + Path("host/home/.cache/muster/") + "*/muster ]" +
            wait + "exit 1\n",
        0755);
  Daemon daemon = StartDaemon();
  Command run(
      {Path("MUSTER/muster"), "run", "--rdzv-endpoint=" + daemon.endpoint, "--hosts=first,second",
       "--launch-with=" + Path("container") + " {command} {host}", "--no-python", "true"},
      Environment());
  EXPECT_EQ(run.Wait(), 0) << run.err();
  const std::vector<fs::path> cached = Cached();
  ASSERT_EQ(cached.size(), 1u);
  EXPECT_TRUE(ReadAll(cached[0]) == ReadAll(Path("MUSTER/muster")));
  daemon.process.Signal(SIGTERM);
  EXPECT_NE(daemon.process.Wait(), std::nullopt);
  ExpectNothingLeft();
}

TEST_F(HostsShippingTest, HostWithAnotherProcessorIsRefused) {
  Write("host/bin/uname", "#!/bin/sh\necho riscv64\n", 0755);
  Command run = StartThere();
  EXPECT_EQ(run.Wait(), 3) << run.err();
  EXPECT_TRUE(Contains(run.err(),
                       "muster run: first cannot be reached: its processor is riscv64, but this "
                       "muster is built for "));
  EXPECT_TRUE(Cached().empty());
  ExpectNothingLeft();
}

TEST_F(HostsShippingTest, NothingIsSentWhereThatIsForbidden) {
  Command run = StartThere({"--no-copy"});
  EXPECT_EQ(run.Wait(), 3) << run.err();
  EXPECT_TRUE(Contains(run.err(),
                       "muster run: first cannot be reached: there is no muster there, neither in "
                       "PATH nor as "));
  EXPECT_TRUE(Cached().empty());
  ExpectNothingLeft();
}

class OtherBuildTest : public HostsShippingTest {
 protected:
  // Puts another build of muster into the host's PATH: its build id differs.
  void InstallAnotherBuild() {
    std::string program = ReadAll(MusterPath());
    // The note's header: name size 4, a SHA-1 of 20 bytes, NT_GNU_BUILD_ID, "GNU".
    const std::string header("\4\0\0\0\24\0\0\0\3\0\0\0GNU\0", 16);
    const std::size_t at = program.find(header);
    ASSERT_NE(at, std::string::npos);
    program[at + header.size()] = static_cast<char>(program[at + header.size()] ^ 1);
    Write("host/bin/muster", program, 0755);
  }
};

TEST_F(OtherBuildTest, IsReplacedForTheJob) {
  ASSERT_NO_FATAL_FAILURE(InstallAnotherBuild());
  Command run = StartThere();
  EXPECT_EQ(run.Wait(), 0) << run.err();
  EXPECT_EQ(run.out(), "[default0]:rank 0 runs\n");
  EXPECT_EQ(Cached().size(), 1u);
  ExpectNothingLeft();
}

TEST_F(OtherBuildTest, IsRefusedWhereNothingIsSent) {
  ASSERT_NO_FATAL_FAILURE(InstallAnotherBuild());
  Command run = StartThere({"--no-copy"});
  EXPECT_EQ(run.Wait(), 3) << run.err();
  EXPECT_TRUE(
      Contains(run.err(), "muster run: first cannot be reached: its muster is a different build"));
  ExpectNothingLeft();
}

}  // namespace
}  // namespace muster::test
