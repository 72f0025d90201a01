// Which node gets which rank: a table of situations.
#include "rendezvous/core/values/record.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

Candidate Node(const std::string& address, int previous_rank = -1,
               std::optional<int> hint = std::nullopt, std::vector<std::string> topology = {}) {
  return {NodeInfo{.node_id = "id-" + address,
                   .host = address,
                   .address = address,
                   .rank_hint = hint,
                   .topology = std::move(topology)},
          previous_rank};
}

std::vector<std::string> Order(const std::vector<Candidate>& candidates) {
  std::vector<std::string> order;
  for (const Placement& placement : OrderRanks(candidates)) order.push_back(placement.node->host);
  return order;
}

std::vector<std::string> Reasons(const std::vector<Candidate>& candidates) {
  std::vector<std::string> reasons;
  for (const Placement& placement : OrderRanks(candidates)) reasons.push_back(placement.reason);
  return reasons;
}

using Names = std::vector<std::string>;

TEST(RankOrder, AddressesCompareAsPeopleCount) {
  EXPECT_EQ(Order({Node("node10"), Node("node9"), Node("node2")}),
            (Names{"node2", "node9", "node10"}));
  EXPECT_EQ(Order({Node("10.0.0.10"), Node("10.0.0.9"), Node("9.255.0.1")}),
            (Names{"9.255.0.1", "10.0.0.9", "10.0.0.10"}));
}

// Among nodes behind one NAT, or on one machine, node66 came before node7.
TEST(RankOrder, NamesDecideWhereNodesShareAnAddress) {
  std::vector<Candidate> candidates;
  for (const char* const host : {"node70", "node8", "node66", "node7"}) {
    candidates.push_back(
        {NodeInfo{.node_id = std::string(host) + "-x", .host = host, .address = "10.0.0.1"}, -1});
  }
  EXPECT_EQ(Order(candidates), (Names{"node7", "node8", "node66", "node70"}));
}

TEST(RankOrder, ANodeGetsTheNodeRankItAskedFor) {
  EXPECT_EQ(Order({Node("a", -1, 1), Node("b", -1, 2), Node("c", -1, 0)}), (Names{"c", "a", "b"}));
  EXPECT_EQ(Reasons({Node("a", -1, 1), Node("b", -1, 0)}),
            (Names{"asked for node rank 0", "asked for node rank 1"}));
}

TEST(RankOrder, WhoDidNotAskFillsWhatIsLeft) {
  EXPECT_EQ(Order({Node("a"), Node("b", -1, 0), Node("c")}), (Names{"b", "a", "c"}));
  EXPECT_EQ(Order({Node("a"), Node("b", -1, 1)}), (Names{"a", "b"}));
}

TEST(RankOrder, HintsThatDoNotFitSayAnOrder) {
  EXPECT_EQ(Order({Node("a", -1, 7), Node("b", -1, 5)}), (Names{"b", "a"}));
  EXPECT_EQ(Order({Node("a", -1, 2), Node("b", -1, 1)}), (Names{"b", "a"}));
  EXPECT_EQ(Reasons({Node("a", -1, 7), Node("b", -1, 5)})[0],
            "gets rank 0 in order of node rank 5");
}

TEST(RankOrder, TwoWhoAskForTheSameRankGetDifferentOnes) {
  EXPECT_EQ(Order({Node("b", -1, 0), Node("a", -1, 0)}), (Names{"a", "b"}));
}

TEST(RankOrder, NeighboursInTheTopologyGetNeighbouringRanks) {
  EXPECT_EQ(Order({Node("1", -1, {}, {"rack10"}), Node("2", -1, {}, {"rack2"}),
                   Node("3", -1, {}, {"rack10"}), Node("4", -1, {}, {"rack2"})}),
            (Names{"2", "4", "1", "3"}));
}

TEST(RankOrder, SurvivorsKeepTheirRanksAndANewcomerFillsTheHole) {
  EXPECT_EQ(Order({Node("z", 0), Node("new"), Node("a", 2)}), (Names{"z", "new", "a"}));
  EXPECT_EQ(Reasons({Node("z", 0), Node("new"), Node("a", 2)}),
            (Names{"keeps rank 0", "gets rank 1 in order of address", "keeps rank 2"}));
}

TEST(RankOrder, ASurvivorsRankIsStrongerThanANewcomersHint) {
  EXPECT_EQ(Order({Node("old", 0, 0), Node("new", -1, 0)}), (Names{"old", "new"}));
}

TEST(RankOrder, WhenTheRoundShrinksTheHighestRanksMoveIntoTheHoles) {
  EXPECT_EQ(Order({Node("a", 0), Node("c", 2), Node("d", 3)}), (Names{"a", "d", "c"}));
  EXPECT_EQ(Reasons({Node("a", 0), Node("c", 2), Node("d", 3)})[1],
            "moves from rank 3 to 1, as the round has 3 nodes");
}

TEST(RankOrder, TheOrderOfTheArgumentDoesNotMatter) {
  std::vector<Candidate> nodes = {Node("a", 2), Node("b"),        Node("c", -1, 1),
                                  Node("d", 4), Node("e", -1, 1), Node("f", -1, {}, {"r"})};
  const auto by_address = [](const Candidate& x, const Candidate& y) {
    return x.node->address < y.node->address;
  };
  const Names expected = Order(nodes);
  int permutations = 0;
  do {
    ASSERT_EQ(Order(nodes), expected);
    ++permutations;
  } while (std::next_permutation(nodes.begin(), nodes.end(), by_address));
  EXPECT_EQ(permutations, 720);
}

}  // namespace
}  // namespace muster::rendezvous
