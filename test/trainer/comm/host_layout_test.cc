#include "trainer/comm/host_layout.h"

#include <gtest/gtest.h>

#include "trainer/comm/comm.h"

namespace muster::trainer {
namespace {

using Ranks = std::vector<int>;

TEST(HostLayoutTest, OneHost) {
  const HostLayout layout = LayOutHosts({"a", "a", "a"}, 2);
  EXPECT_EQ(layout.world_size, 3);
  EXPECT_EQ(layout.hosts, 1);
  EXPECT_EQ(layout.local_ranks, Ranks({0, 1, 2}));
  EXPECT_EQ(layout.local_index, 2);
  EXPECT_EQ(layout.leaders, Ranks({0}));
  EXPECT_EQ(layout.smallest, 3);
  EXPECT_FALSE(layout.leads());
}

TEST(HostLayoutTest, RanksOfTwoHostsInTurn) {
  const HostLayout layout = LayOutHosts({"b", "a", "b", "a", "b"}, 3);
  EXPECT_EQ(layout.hosts, 2);
  EXPECT_EQ(layout.host, 1);
  EXPECT_EQ(layout.local_ranks, Ranks({1, 3}));
  EXPECT_EQ(layout.local_index, 1);
  EXPECT_EQ(layout.leaders, Ranks({0, 1}));
  EXPECT_EQ(layout.smallest, 2);
  EXPECT_TRUE(LayOutHosts({"b", "a", "b", "a", "b"}, 1).leads());
}

TEST(HostLayoutTest, AProcessIsOnItsOwnHost) {
  EXPECT_EQ(HostId(), HostId());
  EXPECT_GT(HostId().size(), 36U);
  EXPECT_LE(HostId().size(), kHostIdBytes);
}

// What is picked for these hosts.
CommChoice Auto(const std::vector<std::string>& hosts, const std::string& trouble = "") {
  return PickComm(Comm::kAuto, LayOutHosts(hosts, 0), trouble).value();
}

TEST(PickCommTest, SharedMemoryWhereItIsRight) {
  EXPECT_EQ(Auto({"a", "a"}).comm, Comm::kShm);
  EXPECT_EQ(Auto({"a", "a"}).why, "shared memory: 2 ranks on one host");
  EXPECT_EQ(Auto({"a", "a", "b", "b"}).comm, Comm::kShm);
  EXPECT_EQ(Auto({"a", "a", "b", "b"}).why,
            "shared memory: 4 ranks on 2 hosts, and Gloo between the hosts");
}

TEST(PickCommTest, GlooWhereItIsNot) {
  EXPECT_EQ(Auto({"a"}).comm, Comm::kGloo);
  EXPECT_EQ(Auto({"a"}).why, "Gloo: one rank, which sends nothing");
  EXPECT_EQ(Auto({"a", "b"}).comm, Comm::kGloo);
  EXPECT_EQ(Auto({"a", "a", "b"}).comm, Comm::kGloo);
  EXPECT_EQ(Auto({"a", "a", "b"}).why, "Gloo: 3 ranks on 2 hosts, and on some there is only one");
  EXPECT_EQ(Auto({"a", "a"}, "rank 1: /dev/shm is full").comm, Comm::kGloo);
  EXPECT_EQ(Auto({"a", "a"}, "rank 1: /dev/shm is full").why,
            "Gloo: no shared memory: rank 1: /dev/shm is full");
}

TEST(PickCommTest, WhatIsAskedForIsTakenOrRefused) {
  const HostLayout two = LayOutHosts({"a", "a"}, 0);
  EXPECT_EQ(PickComm(Comm::kGloo, two, "")->comm, Comm::kGloo);
  EXPECT_EQ(PickComm(Comm::kShm, LayOutHosts({"a", "b"}, 0), "")->comm, Comm::kShm);
  EXPECT_EQ(PickComm(Comm::kShm, two, "rank 1: no").status(),
            absl::UnavailableError("--comm shm: rank 1: no"));
}

TEST(PicksNcclTest, WithGpusAndOnlyThere) {
  const GpuFacts two = {.has_nccl = true, .visible = 2, .local_rank = 1};
  EXPECT_TRUE(PicksNccl(Comm::kAuto, two).value());
  EXPECT_FALSE(PicksNccl(Comm::kShm, two).value());
  EXPECT_FALSE(PicksNccl(Comm::kAuto, {.has_nccl = true}).value());
  EXPECT_FALSE(PicksNccl(Comm::kAuto, {.visible = 2}).value());
  EXPECT_EQ(PicksNccl(Comm::kNccl, {.visible = 2}).status().message(),
            "--comm nccl: this LibTorch was built without NCCL");
  EXPECT_EQ(
      PicksNccl(Comm::kAuto, {.has_nccl = true, .visible = 1, .local_rank = 1}).status().message(),
      "NCCL needs a GPU for local rank 1, and 1 is visible");
}

}  // namespace
}  // namespace muster::trainer
