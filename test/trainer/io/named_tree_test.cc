#include "trainer/io/formats/value_tree.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace muster::trainer {
namespace {

using nlohmann::json;
using Dict = NamedTree::Dict;

// `tree` after a round trip through text.
NamedTree ThroughText(const NamedTree& tree) {
  const auto read = ReadTreeJson(json::parse(TreeJson(tree).dump()));
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? *read : NamedTree();
}

std::string NamedTreeErrorOf(const std::string& text) {
  const auto read = ReadTreeJson(json::parse(text));
  return read.ok() ? "none" : std::string(read.status().message());
}

TEST(NamedTreeTest, EveryKindComesBackAsItWas) {
  Dict dict;
  dict.Set("z", NamedTree());
  dict.Set("a", true);
  dict.Set(std::int64_t{-7}, std::numeric_limits<std::int64_t>::min());
  dict.Set("7", std::numeric_limits<std::int64_t>::max());
  dict.Set("list", NamedTree::List{1, "two \" \n \xc3\xa4", NamedTree(TensorName{"conv.weight"})});
  dict.Set("pair", NamedTree::Tuple({0.9, 0.999}));
  dict.Set("ordered", NamedTree(Dict(/*ordered=*/true)));
  const NamedTree back = ThroughText(NamedTree(dict));

  ASSERT_NE(back.dict(), nullptr);
  EXPECT_FALSE(back.dict()->ordered());
  std::string order;
  for (const auto& [key, value] : *back.dict()) order += ToString(key) + " ";
  EXPECT_EQ(order, "'z' 'a' -7 '7' 'list' 'pair' 'ordered' ");
  EXPECT_TRUE(back.Find("z")->is_none());
  EXPECT_TRUE(*back.Find("a")->boolean());
  EXPECT_EQ(*back.Find(std::int64_t{-7})->integer(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(*back.Find("7")->integer(), std::numeric_limits<std::int64_t>::max());
  const NamedTree::List& list = *back.Find("list")->list();
  EXPECT_EQ(back.Find("list")->kind(), ValueKind::kList);
  EXPECT_EQ(*list[1].string(), "two \" \n \xc3\xa4");
  EXPECT_EQ(list[2].tensor()->name, "conv.weight");
  EXPECT_EQ(back.Find("pair")->kind(), ValueKind::kTuple);
  EXPECT_EQ(*(*back.Find("pair")->list())[1].floating(), 0.999);
  EXPECT_TRUE(back.Find("ordered")->dict()->ordered());
}

TEST(NamedTreeTest, FloatsKeepTheirLastBitAndStayFloats) {
  for (const double number : {0.1, 1.0, -0.0, 1e300, 5e-324, 1.0 / 3, HUGE_VAL, -HUGE_VAL}) {
    const NamedTree back = ThroughText(NamedTree(number));
    ASSERT_NE(back.floating(), nullptr) << number;
    EXPECT_EQ(*back.floating(), number);
    EXPECT_EQ(std::signbit(*back.floating()), std::signbit(number));
  }
  EXPECT_TRUE(std::isnan(*ThroughText(NamedTree(std::nan(""))).floating()));
}

TEST(NamedTreeTest, WhatIsNoTreeIsRefused) {
  const std::string begin = "it is damaged: its checkpoint has ";
  EXPECT_EQ(NamedTreeErrorOf("{}"), begin + "an object that does not say what it is");
  EXPECT_EQ(NamedTreeErrorOf(R"({"dict": [], "tuple": []})"),
            begin + "an object that does not say what it is");
  EXPECT_EQ(NamedTreeErrorOf(R"({"set": []})"), begin + "a \"set\" that cannot be understood");
  EXPECT_EQ(NamedTreeErrorOf(R"({"tensor": 3})"), begin + "a \"tensor\" that cannot be understood");
  EXPECT_EQ(NamedTreeErrorOf(R"({"float": "1.5"})"),
            begin + "a \"float\" that cannot be understood");
  EXPECT_EQ(NamedTreeErrorOf(R"({"dict": [["a", 1, 2]]})"),
            begin + "a dict that is not a list of pairs");
  EXPECT_EQ(NamedTreeErrorOf(R"({"dict": {"a": 1}})"),
            begin + "a dict that is not a list of pairs");
  EXPECT_EQ(NamedTreeErrorOf(R"({"dict": [[1.5, 1]]})"),
            begin + "a key that is neither text nor an integer");
  EXPECT_EQ(NamedTreeErrorOf(R"({"dict": [["a", 1], ["a", 2]]})"), begin + "two of 'a'");
  EXPECT_EQ(NamedTreeErrorOf("9223372036854775808"), begin + "a number that is too large");
  EXPECT_EQ(NamedTreeErrorOf(R"([{"tuple": 1}])"), begin + "a list is missing");
  EXPECT_EQ(NamedTreeErrorOf(std::string(100, '[') + std::string(100, ']')), "none");
  EXPECT_EQ(NamedTreeErrorOf(std::string(101, '[') + std::string(101, ']')),
            begin + "lists or dicts within one another too deeply");
}

}  // namespace
}  // namespace muster::trainer
