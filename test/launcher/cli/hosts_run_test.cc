// Command lines with --hosts: what they mean, what is passed on to hosts, and what does not fit.
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "launcher/cli/flags.h"
#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

using testing::ElementsAre;

using Args = std::vector<std::string>;

ParsedRun ParseHostsRun(Args args, Environment environment = {}) {
  args.insert(args.end(), {"no_such_script_here.py", "--lr=1"});
  return ParseRun(args, Dialect::kRun, environment, {.cpus = 6, .nvidia_devices = 0});
}

HostsRun Understood(const Args& args, const Environment& environment = {}) {
  ParsedRun parsed = ParseHostsRun(args, environment);
  if (const auto* error = std::get_if<UsageError>(&parsed)) ADD_FAILURE() << error->sentence;
  auto* const run = std::get_if<HostsRun>(&parsed);
  return run == nullptr ? HostsRun() : *run;
}

std::string HostsRunError(const Args& args, const Environment& environment = {}) {
  const ParsedRun parsed = ParseHostsRun(args, environment);
  const auto* error = std::get_if<UsageError>(&parsed);
  return error == nullptr ? "" : error->sentence;
}

std::string Names(const HostsRun& run) {
  std::string names;
  for (const Host& host : run.hosts) absl::StrAppend(&names, names.empty() ? "" : " ", host.Text());
  return names;
}

TEST(HostsRunTest, HostsAreReadInEverySpelling) {
  for (const Args& args :
       {Args{"--hosts=a,b:2"}, Args{"--hosts", "a,b:2"}, Args{"-H", "a,b:2"}, Args{"-Ha,b:2"}}) {
    const HostsRun run = Understood(args);
    EXPECT_EQ(Names(run), "a b");
    EXPECT_EQ(run.hosts.at(1).workers, 2);
    EXPECT_EQ(run.min_nodes, 2);
  }
  const test::TempDir dir;
  EXPECT_EQ(Names(Understood({"--hostfile=" + dir.Write("hosts", "a\nb slots=2\n")})), "a b");
}

// A host that reads them would start the job's hosts again.
TEST(HostsRunTest, FlagsAboutHostsAreNotPassedOn) {
  const HostsRun run =
      Understood({"-H", "a,b", "--no-copy", "--max-restarts", "3", "--fanout=2", "--export", "X=1",
                  "-r3", "--launch-with", "go {host} {command}", "--ssh-control-persist=2.5",
                  "--token-file=/secret", "--nproc_per_node=4"});
  EXPECT_THAT(run.flags, ElementsAre("--max-restarts", "3", "-r3", "--nproc_per_node=4"));
  EXPECT_THAT(run.command, ElementsAre("no_such_script_here.py", "--lr=1"));
  EXPECT_EQ(run.fanout, 2);
  EXPECT_FALSE(run.ships);
  EXPECT_EQ(run.launch_with, "go {host} {command}");
  EXPECT_EQ(run.ssh_control_persist, std::chrono::milliseconds(2500));
  EXPECT_EQ(run.token.file, "/secret");
}

TEST(HostsRunTest, NodesMayBeFewerThanHosts) {
  EXPECT_EQ(Understood({"-Ha,b,c", "--nnodes=2:3"}).min_nodes, 2);
  EXPECT_EQ(Understood({"-Ha,b,c", "--nnodes=3"}).min_nodes, 3);
  EXPECT_EQ(HostsRunError({"-Ha,b,c", "--nnodes=2"}),
            "--nnodes asks for 2 nodes, and there are 3 hosts; leave it out, or write "
            "--nnodes=MIN:3 to start without some of them");
}

TEST(HostsRunTest, EnvironmentGoesAlongAsFarAsItIsForWorkersOrAskedFor) {
  const Environment environment = {{"HOME", "/home/me"},        {"NCCL_DEBUG", "INFO"},
                                   {"AWS_SECRET", "x"},         {"PET_MAX_RESTARTS", "2"},
                                   {"MUSTER_TOKEN_FILE", "/t"}, {"WANTED", "yes"},
                                   {"PATH", "/nowhere"}};
  EXPECT_THAT(
      Understood({"-Ha", "--export=WANTED", "--export=MADE=a=b", "--export=MISSING"}, environment)
          .environment,
      ElementsAre("MADE=a=b", "NCCL_DEBUG=INFO", "PET_MAX_RESTARTS=2", "WANTED=yes"));
}

// "The virtual environment that was active here was not used on the hosts."
TEST(HostsRunTest, PythonOfTheCommandGoesAlong) {
  EXPECT_THAT(Understood({"-Ha"}, {{"PYTHON_EXEC", "/bin/sh"}, {"PATH", "/nowhere"}}).environment,
              ElementsAre("MUSTER_PYTHON=/bin/sh", "PYTHON_EXEC=/bin/sh"));
  const test::TempDir venv;
  const std::string python = venv.Write("python3", "", 0755);
  EXPECT_THAT(Understood({"-Ha"}, {{"PATH", venv.path() + ":/usr/bin"}}).environment,
              ElementsAre("MUSTER_PYTHON=" + python));
}

TEST(HostsRunTest, EachMistakeHasItsSentence) {
  EXPECT_EQ(HostsRunError({"--hosts=a[2-1]"}),
            "--hosts=a[2-1] has 'a[2-1]', which has a backward range, 2-1; write 1-2");
  EXPECT_EQ(HostsRunError({"--hostfile=/no/such/file"}),
            "read the hostfile /no/such/file: No such file or directory");
  EXPECT_EQ(HostsRunError({"-Ha", "--fanout=0"}),
            "--fanout=0 is not valid; give a whole number from 1");
  EXPECT_EQ(HostsRunError({"-Ha", "--export==1"}),
            "--export==1 is not a variable; write NAME or NAME=VALUE");
  EXPECT_EQ(
      HostsRunError({"-Ha", "--launch-with=rsh {host}"}),
      "--launch-with=rsh {host} does not say where the host or the command goes; write {host} "
      "and {command}, as in 'docker exec -i {host} sh -c {command}'");
  const std::pair<Args, std::string> contradictions[] = {
      {{"--hostfile=x"}, "--hostfile: both say which hosts there are"},
      {{"--standalone"}, "--standalone: that is one node, without a network"},
      {{"-n4"}, "--total-workers: the hosts' numbers say how many workers there are"},
      {{"--node-rank=1"}, "--node-rank: the order of the hosts is that of their ranks"},
      {{"--master-addr=a"}, "a static rendezvous: the first host serves one"},
      {{"--rdzv-backend=static"}, "a static rendezvous: the first host serves one"},
      {{"--local-addr=a"}, "--local-addr: each host has its own"},
      {{"--dry-run"}, "--dry-run and --print-config: they show this machine as a node"}};
  for (const auto& [flags, why] : contradictions) {
    Args args = {"--hosts=a"};
    args.insert(args.end(), flags.begin(), flags.end());
    EXPECT_EQ(HostsRunError(args), "--hosts does not go with " + why + "; drop one of them");
  }
}

}  // namespace
}  // namespace muster::launcher
