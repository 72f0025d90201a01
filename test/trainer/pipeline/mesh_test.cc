#include "trainer/pipeline/mesh.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

const MeshLimits kLimits = {};

MeshLimits Gpt(int heads, int stages) {
  return {.model = "gpt",
          .tensor_divides = heads,
          .tensor_divides_what = "attention heads",
          .stages = stages};
}

std::string Sentence(const std::string& text, int ranks, const MeshLimits& limits) {
  const auto request = ParseMeshRequest(text);
  if (!request.ok()) return std::string(request.status().message());
  const auto mesh = FitMesh(*request, ranks, limits);
  return mesh.ok() ? mesh->Text() : std::string(mesh.status().message());
}

TEST(MeshTest, TheTensorDimensionIsInnermostAndThePipelineOutermost) {
  const Mesh mesh = {.pipeline = 2, .data = 3, .tensor = 4};
  EXPECT_EQ(mesh.ranks(), 24);
  EXPECT_EQ(mesh.PlaceOf(0), (MeshPlace{0, 0, 0}));
  EXPECT_EQ(mesh.PlaceOf(1), (MeshPlace{0, 0, 1}));
  EXPECT_EQ(mesh.PlaceOf(4), (MeshPlace{0, 1, 0}));
  EXPECT_EQ(mesh.PlaceOf(12), (MeshPlace{1, 0, 0}));
  EXPECT_EQ(mesh.MembersOf(5, Dimension::kTensor), (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(mesh.MembersOf(5, Dimension::kData), (std::vector<int>{1, 5, 9}));
  EXPECT_EQ(mesh.MembersOf(5, Dimension::kPipeline), (std::vector<int>{5, 17}));
}

TEST(MeshTest, EachRankHasOnePlaceAndIsInItsGroups) {
  for (const Mesh& mesh : {Mesh{1, 1, 1}, Mesh{2, 2, 2}, Mesh{3, 1, 2}, Mesh{1, 5, 1}}) {
    for (int rank = 0; rank < mesh.ranks(); ++rank) {
      EXPECT_EQ(mesh.RankOf(mesh.PlaceOf(rank)), rank);
      for (const Dimension dimension : kDimensions) {
        const std::vector<int> members = mesh.MembersOf(rank, dimension);
        ASSERT_EQ(members.size(), static_cast<std::size_t>(mesh.Of(dimension)));
        // A rank's index among the members is its place.
        EXPECT_EQ(members[static_cast<std::size_t>(mesh.PlaceOf(rank).Of(dimension))], rank);
      }
    }
  }
}

TEST(MeshRequestTest, SizesThatAreNotGivenAreOneAndDataTakesTheRest) {
  EXPECT_EQ(Sentence("pp=2,dp=2,tp=2", 8, Gpt(4, 6)), "pp=2,dp=2,tp=2");
  EXPECT_EQ(Sentence("tp=2", 8, Gpt(4, 6)), "pp=1,dp=4,tp=2");
  EXPECT_EQ(Sentence("tp=2,pp=2", 8, Gpt(4, 6)), "pp=2,dp=2,tp=2");
  EXPECT_EQ(Sentence("dp=3", 3, kLimits), "pp=1,dp=3,tp=1");
  EXPECT_TRUE(ParseMeshRequest("auto")->choose);
}

TEST(MeshRequestTest, AMistakeInTheTextIsOneSentence) {
  const std::string what =
      "; it is auto, or sizes of the pipeline, data and tensor dimensions, as pp=2,dp=2,tp=2";
  EXPECT_EQ(Sentence("", 1, kLimits), "--mesh : '' is not a dimension" + what);
  EXPECT_EQ(Sentence("pp", 1, kLimits), "--mesh pp: pp needs a whole number from 1 on" + what);
  EXPECT_EQ(Sentence("pp=2,pp=2", 1, kLimits), "--mesh pp=2,pp=2: pp is there twice" + what);
  EXPECT_EQ(Sentence("ep=2", 1, kLimits), "--mesh ep=2: 'ep' is not a dimension" + what);
  for (const char* bad : {"pp=0", "pp=-1", "pp=x", "pp=1=2", "pp=2000000", "pp=99999999999"}) {
    EXPECT_FALSE(ParseMeshRequest(bad).ok()) << bad;
  }
}

TEST(MeshRequestTest, AMeshThatDoesNotFitSaysWhichWould) {
  EXPECT_EQ(Sentence("pp=3", 8, Gpt(4, 6)),
            "--mesh: pp=3 times tp=1 is 3, which does not divide the 8 ranks of this job; the "
            "product must be one of 1, 2, 4, 8");
  EXPECT_EQ(Sentence("dp=3,tp=2", 8, Gpt(4, 6)),
            "--mesh pp=1,dp=3,tp=2: that is 6 ranks, and this job has 8; take dp=4, leave it out, "
            "or start 6 ranks");
  EXPECT_EQ(Sentence("tp=3", 6, Gpt(4, 6)),
            "--mesh pp=1,dp=2,tp=3: the 4 attention heads of gpt cannot be shared evenly by 3 "
            "ranks; take tp=1, 2 or 4");
  EXPECT_EQ(Sentence("tp=2", 2, kLimits),
            "--mesh pp=1,dp=1,tp=2: the layers of the model cannot be split over ranks; take tp=1");
  EXPECT_EQ(Sentence("pp=8", 8, Gpt(4, 6)),
            "--mesh pp=8,dp=1,tp=1: gpt can be cut into 6 stages at most, and not into 8; take "
            "pp=6 or less");
  EXPECT_EQ(Sentence("pp=1000000,tp=1000000", 4, kLimits).rfind("--mesh: pp=1000000", 0), 0u);
}

TEST(MeshChoiceTest, DataAloneWhereTheModelFits) {
  EXPECT_EQ(ChooseMesh({.host_of_rank = {0, 0, 1, 1}}, Gpt(4, 6))->Text(), "pp=1,dp=4,tp=1");
  EXPECT_EQ(
      ChooseMesh({.host_of_rank = {0, 0, 1, 1}, .state_bytes = 16, .memory_bytes = 16}, Gpt(4, 6))
          ->Text(),
      "pp=1,dp=4,tp=1");
}

TEST(MeshChoiceTest, SharedByFewRanksInsideAHostFirst) {
  const auto choose = [](std::vector<int> hosts, std::int64_t state, const MeshLimits& limits) {
    const auto mesh = ChooseMesh(
        {.host_of_rank = std::move(hosts), .state_bytes = state, .memory_bytes = 10}, limits);
    return mesh.ok() ? mesh->Text() : std::string(mesh.status().message());
  };
  EXPECT_EQ(choose({0, 0, 1, 1}, 20, Gpt(4, 6)), "pp=1,dp=2,tp=2");
  EXPECT_EQ(choose({0, 0, 1, 1}, 40, Gpt(4, 6)), "pp=2,dp=1,tp=2");
  EXPECT_EQ(choose({0, 0, 0, 0}, 40, Gpt(4, 6)), "pp=1,dp=1,tp=4");
  // One rank a host: tensor groups would leave their hosts.
  EXPECT_EQ(choose({0, 1, 2, 3}, 20, Gpt(4, 6)), "pp=2,dp=2,tp=1");
  // What is left after a node with two of eight ranks has gone.
  EXPECT_EQ(choose({0, 0, 1, 1, 2, 2}, 20, Gpt(4, 6)), "pp=1,dp=3,tp=2");
  // Heads that cannot be shared by three.
  EXPECT_EQ(choose({0, 0, 0}, 20, Gpt(4, 6)), "pp=3,dp=1,tp=1");
  EXPECT_EQ(choose({0, 0}, 40, Gpt(4, 6)),
            "--mesh auto: parameters, gradients and optimizer of gpt take 0.0 MB, on 2 ranks at "
            "least 0.0 MB each, and a rank has 0.0 MB; start more ranks, on more hosts, or give "
            "--mesh to try it anyway");
}

TEST(MeshTableTest, SaysWhoIsWhereAndWhatItCosts) {
  EXPECT_EQ(MeshTable({2, 1, 2}, {"a", "a", "b", "b"}, {1'050'000, 0, 4'190}),
            "mesh pp=2,dp=1,tp=2 of 4 ranks on 2 hosts\n"
            "  host a: rank 0 (pp 0, dp 0, tp 0), rank 1 (pp 0, dp 0, tp 1)\n"
            "  host b: rank 2 (pp 1, dp 0, tp 0), rank 3 (pp 1, dp 0, tp 1)\n"
            "  pipeline: groups of 2 ranks across 2 hosts, 1.05 MB sent by a rank in a step\n"
            "  tensor: groups of 2 ranks on one host, 4.19 kB sent by a rank in a step");
}

TEST(MeshTableTest, ManyHostsAreNotAllListed) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 1000; ++i) hosts.push_back("n" + std::to_string(i));
  const std::string table = MeshTable({1, 1000, 1}, hosts, {});
  EXPECT_NE(table.find("n15"), std::string::npos);
  EXPECT_EQ(table.find("n16"), std::string::npos);
  EXPECT_NE(table.find("and 984 more hosts"), std::string::npos);
}

TEST(MeshTableTest, WarnsOfTensorRanksOnDifferentHosts) {
  EXPECT_TRUE(MeshWarnings({2, 1, 2}, {"a", "a", "b", "b"}, {}).empty());
  EXPECT_EQ(MeshWarnings({1, 1, 4}, {"a", "a", "b", "b"}, {0, 0, 2'000'000}),
            std::vector<std::string>{
                "--mesh pp=1,dp=1,tp=4: tensor ranks that work on one layer are on different "
                "hosts, and each layer waits for the network (2.00 MB from each rank in a step); "
                "take a tp that divides the ranks of each host"});
}

}  // namespace
}  // namespace muster::trainer
