#include "trainer/comm/host/transport.h"

#include <gtest/gtest.h>

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

// The choice for these hosts.
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

TEST(WhyNotNcclTest, WithGpusAndOnlyThere) {
  const GpuFacts two = {.has_nccl = true, .visible = 2, .local_rank = 1};
  EXPECT_EQ(WhyNotNccl(Comm::kAuto, two).value(), "");
  EXPECT_EQ(WhyNotNccl(Comm::kShm, two).value(), "--comm shm is given");
  EXPECT_EQ(WhyNotNccl(Comm::kAuto, {.has_nccl = true}).value(), "no GPU is visible");
  EXPECT_EQ(WhyNotNccl(Comm::kAuto, {.visible = 2}).value(), "LibTorch is built without NCCL");
  EXPECT_EQ(WhyNotNccl(Comm::kNccl, {.visible = 2}).status().message(),
            "--comm nccl: this LibTorch was built without NCCL");
  EXPECT_EQ(WhyNotNccl(Comm::kAuto, {.has_nccl = true, .has_gloo = false, .visible = 1}).value(),
            "");
  EXPECT_EQ(WhyNotNccl(Comm::kAuto, {.has_nccl = true, .has_gloo = false}).status().message(),
            "ranks without NCCL meet over Gloo, and no GPU is visible; this program was built "
            "without Gloo: build it with -DMUSTER_GLOO=ON and Gloo's headers, or run it on GPUs");
  const auto mistake = [](int visible, std::optional<int> local_rank) {
    return WhyNotNccl(Comm::kNccl, {.has_nccl = true, .visible = visible, .local_rank = local_rank})
        .status();
  };
  const std::string advice =
      "; start at most as many ranks on a host as it has GPUs, or give --comm gloo";
  EXPECT_EQ(mistake(0, 0).message(),
            "NCCL needs a GPU for local rank 0, and none is visible" + advice);
  EXPECT_EQ(mistake(1, 1).message(),
            "NCCL needs a GPU for local rank 1, and 1 is visible" + advice);
  // All ranks trained on the first GPU.
  EXPECT_EQ(mistake(2, std::nullopt).message(),
            "NCCL needs LOCAL_RANK, by which a rank knows its GPU, and it is not set: start the "
            "ranks with a launcher, or give --comm gloo");
}

}  // namespace
}  // namespace muster::trainer
