// One process's part of a launch tree, with shells as hosts.
#include "launcher/remote/branch.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/run_until.h"
#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

class BranchTest : public testing::Test {
 protected:
  BranchTest() { std::signal(SIGPIPE, SIG_IGN); }

  // Hosts n0, n1, ...; `script` gets a host's name as $0.
  static std::vector<launch::v1::Host> Hosts(int count) {
    std::vector<launch::v1::Host> hosts(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      hosts[static_cast<std::size_t>(i)].set_index(i);
      hosts[static_cast<std::size_t>(i)].set_name("n" + std::to_string(i));
    }
    return hosts;
  }
  launch::v1::Job JobOf(const std::string& script, int hosts) const {
    launch::v1::Job job;
    job.set_min_nodes(hosts);
    job.set_max_nodes(hosts);
    job.set_fanout(1);
    job.set_answer_timeout_ms(60'000);
    job.set_launch_with("sh -c '" + script + "' {host} {command}");
    return job;
  }
  std::string Path(const std::string& name) const { return dir_.Path(name); }

  const test::TempDir dir_;
  boost::asio::io_context io_;
};

// "n0 cannot be reached", and then a process was still started on n1, whose turn it was.
TEST_F(BranchTest, NothingIsStartedOnceItIsClosedInTheMiddleOfWhatWasDecided) {
  // The last attempt at n0 ends when that at n1 is due, after half a second and a second.
  const launch::v1::Job job =
      JobOf("[ $0 = n0 ] || { [ -e " + Path("over") + " ] && touch " + Path("late") +
                "; exit 1; }; echo >>" + Path("tries") + "; [ $(wc -l <" + Path("tries") +
                ") = 3 ] || exit 1; sleep 2; touch " + Path("over") + "; exit 1",
            2);
  bool gone = false;
  std::optional<Branch> branch;
  branch.emplace(io_, job, "muster",
                 Branch::Callbacks{.on_news =
                                       [&](const HostNews& news) {
                                         if (news.what != HostNews::What::kUnreachable) return;
                                         EXPECT_EQ(news.host, 0);
                                         branch->Close(std::chrono::seconds(60),
                                                       [&] { gone = true; });
                                       },
                                   .on_output = [](const launch::v1::Output&) {},
                                   .has_room = [] { return true; }});
  branch->Adopt(Hosts(2));
  EXPECT_TRUE(test::RunUntil(io_, [&] { return gone; }));
  for (int i = 0; i < 20; ++i) io_.run_one_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(std::filesystem::exists(Path("late")));
}

TEST_F(BranchTest, AShellThatDoesNotUnderstandWhatItIsGivenIsGivenWhatEachDoes) {
  // fish before 3.0 reports this; through ssh, as only ssh gets more than every shell understands.
  std::filesystem::create_directory(Path("bin"));
  std::ofstream(Path("bin/ssh")) << "#!/bin/sh\nfor word; do command=$word; done\n"
                                 << "case \"$command\" in \"exec sh -c \"*) touch "
                                 << Path("understood")
                                 << ";; esac\necho \"Unsupported use of &&\" >&2\nexit 127\n";
  std::filesystem::permissions(Path("bin/ssh"), std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH");
  setenv("PATH", (Path("bin") + ":" + path).c_str(), 1);
  launch::v1::Job job = JobOf("", 1);
  job.clear_launch_with();
  bool tried = false, unreachable = false;
  Branch branch(io_, job, "muster",
                {.on_news =
                     [&](const HostNews& news) {
                       const bool understood = std::filesystem::exists(Path("understood"));
                       if (news.what == HostNews::What::kNotYet && !unreachable) {
                         EXPECT_EQ(understood, std::exchange(tried, true));
                       }
                       unreachable = unreachable || news.what == HostNews::What::kUnreachable;
                     },
                 .on_output = [](const launch::v1::Output&) {},
                 .has_room = [] { return true; }});
  branch.Adopt(Hosts(1));
  EXPECT_TRUE(test::RunUntil(io_, [&] { return unreachable; }));
  EXPECT_TRUE(std::filesystem::exists(Path("understood")));
  setenv("PATH", path.c_str(), 1);
}

// `--launch-with='ssh {host} LD_LIBRARY_PATH=/x {command}'` gave the variable to `test` alone.
TEST_F(BranchTest, WhatIsLaunchedWithIsOneCommandFromTheFirstAttemptOn) {
  const launch::v1::Job job = JobOf(
      "case \"$1\" in \"exec sh -c \"*) ;; *) touch " + Path("several") + ";; esac; exit 1", 1);
  bool unreachable = false;
  Branch branch(io_, job, "muster",
                {.on_news =
                     [&](const HostNews& news) {
                       unreachable = unreachable || news.what == HostNews::What::kUnreachable;
                     },
                 .on_output = [](const launch::v1::Output&) {},
                 .has_room = [] { return true; }});
  branch.Adopt(Hosts(1));
  EXPECT_TRUE(test::RunUntil(io_, [&] { return unreachable; }));
  EXPECT_FALSE(std::filesystem::exists(Path("several")));
}

}  // namespace
}  // namespace muster::launcher
