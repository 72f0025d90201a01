// Tests the checker with hand-written histories, each a situation that a store must or must not
// allow, and with random ones against a checker that is too simple to be wrong.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "test/linearizability/calls.h"
#include "test/linearizability/chance.h"
#include "test/linearizability/checker.h"
#include "test/linearizability/store_history.h"
#include "test/linearizability/store_model.h"

namespace muster::linearizability {
namespace {

// Written as "from call to return: the call, its answer", times in no particular unit.
StoreOperation From(std::int64_t call, std::int64_t end, StoreCall what, StoreAnswer answer) {
  const bool known = answer.kind != StoreAnswer::Kind::kUnknown;
  return {.call = std::move(what),
          .answer = std::move(answer),
          .span = {call, known ? end : Span::kNever},
          .ended_ns = end};
}

testing::AssertionResult IsLinearizable(const StoreHistory& history) {
  const StoreVerdict verdict = CheckStore(history);
  if (verdict.answer == Answer::kLinearizable) return testing::AssertionSuccess();
  return testing::AssertionFailure() << verdict.explanation;
}

TEST(HistoryTest, ReadsSeeWhatWasWrittenLast) {
  EXPECT_TRUE(IsLinearizable({From(0, 1, Get("k"), Nothing()), From(2, 3, Set("k", "a"), Done()),
                              From(4, 5, Get("k"), Value("a")), From(6, 7, Delete("k"), Says(true)),
                              From(8, 9, Get("k"), Nothing())}));
}

TEST(HistoryTest, ReadThatOverlapsAWriteMaySeeItOrNot) {
  for (const StoreAnswer& seen : {Value("a"), Value("b")}) {
    EXPECT_TRUE(IsLinearizable({From(0, 1, Set("k", "a"), Done()),
                                From(2, 9, Set("k", "b"), Done()), From(3, 4, Get("k"), seen)}));
  }
}

TEST(HistoryTest, StaleReadIsCaughtAndNamed) {
  const StoreVerdict verdict =
      CheckStore({From(0, 1, Set("k", "a"), Done()), From(2, 3, Set("k", "b"), Done()),
                  From(4, 5, Get("k"), Value("a"))});
  EXPECT_EQ(verdict.answer, Answer::kNotLinearizable);
  EXPECT_EQ(verdict.explanation,
            "keys k: 2 of 3 operations with known outcome, and no more, were put in order:\n"
            "         0..0        us  client 0  Set 'k' 'a' -> done\n"
            "         0..0        us  client 0  Set 'k' 'b' -> done\n"
            "then the state is 'k' = 'b'\n"
            "and none of these can come next so that the rest follows:\n"
            "         0..0        us  client 0  Get 'k' -> 'a'\n");
}

TEST(HistoryTest, TwoReadsThatOverlapAWriteMayNotSeeItComeAndGo) {
  EXPECT_FALSE(
      IsLinearizable({From(0, 1, Set("k", "a"), Done()), From(2, 9, Set("k", "b"), Done()),
                      From(3, 4, Get("k"), Value("b")), From(5, 6, Get("k"), Value("a"))}));
}

TEST(HistoryTest, LostUpdateIsCaught) {
  EXPECT_TRUE(IsLinearizable({From(0, 5, Add("k", 1), Sum(2)), From(1, 6, Add("k", 1), Sum(1))}));
  EXPECT_FALSE(IsLinearizable({From(0, 5, Add("k", 1), Sum(1)), From(1, 6, Add("k", 1), Sum(1))}));
}

TEST(HistoryTest, OnlyOneOfTwoCompareSetsWins) {
  const StoreOperation first = From(0, 5, CompareSet("k", "", "a"), {.values = {"a"}, .yes = true});
  EXPECT_TRUE(IsLinearizable({first, From(0, 5, CompareSet("k", "", "b"), {.values = {"a"}})}));
  EXPECT_FALSE(IsLinearizable(
      {first, From(0, 5, CompareSet("k", "", "b"), {.values = {"b"}, .yes = true})}));
}

TEST(HistoryTest, AcknowledgedWriteThatIsGoneIsCaught) {
  EXPECT_FALSE(
      IsLinearizable({From(0, 1, Append("k", "a"), Done()), From(2, 3, Get("k"), Nothing())}));
}

TEST(HistoryTest, WriteWithUnknownOutcomeMayHappenOrNotAtAnyLaterTime) {
  const StoreOperation write = From(2, 3, Set("k", "b"), Unknown());
  const StoreOperation before = From(0, 1, Set("k", "a"), Done());
  const StoreOperation old_value = From(4, 5, Get("k"), Value("a"));
  const StoreOperation new_value = From(6, 7, Get("k"), Value("b"));
  EXPECT_TRUE(IsLinearizable({before, write, old_value}));
  EXPECT_TRUE(IsLinearizable({before, write, new_value}));
  EXPECT_TRUE(IsLinearizable({before, write, old_value, new_value}));
}

TEST(HistoryTest, WriteWithUnknownOutcomeMayNotHappenBeforeItsCall) {
  EXPECT_FALSE(
      IsLinearizable({From(0, 1, Get("k"), Value("a")), From(2, 3, Set("k", "a"), Unknown())}));
}

TEST(HistoryTest, WriteWithUnknownOutcomeThatWasSeenMayNotVanish) {
  EXPECT_FALSE(IsLinearizable({From(0, 1, Set("k", "a"), Unknown()),
                               From(2, 3, Get("k"), Value("a")), From(4, 5, Get("k"), Nothing())}));
}

TEST(HistoryTest, WriteWithUnknownOutcomeHappensOnceAtMost) {
  const StoreOperation write = From(0, 1, Add("k", 1), Unknown());
  EXPECT_TRUE(IsLinearizable({write, From(2, 3, Get("k"), Value("1"))}));
  EXPECT_FALSE(IsLinearizable({write, From(2, 3, Get("k"), Value("2"))}));
  EXPECT_TRUE(IsLinearizable({write, write, From(2, 3, Get("k"), Value("2"))}));
}

TEST(HistoryTest, ReadWithUnknownOutcomeSaysNothing) {
  EXPECT_TRUE(IsLinearizable({From(0, 1, Set("k", "a"), Done()), From(2, 3, Get("k"), Unknown()),
                              From(4, 5, Get("k"), Value("a"))}));
}

TEST(HistoryTest, KeysThatAreWrittenTogetherAreSeenTogether) {
  const StoreOperation write = From(0, 9, MultiSet({"x", "y"}, {"1", "1"}), Done());
  const StoreOperation sees_x = From(1, 2, Get("x"), Value("1"));
  const StoreOperation misses_y = From(3, 4, Get("y"), Nothing());
  EXPECT_TRUE(IsLinearizable({write, sees_x}));
  EXPECT_TRUE(IsLinearizable({write, misses_y}));
  EXPECT_FALSE(IsLinearizable({write, sees_x, misses_y}));
  // Written one by one, they may be.
  EXPECT_TRUE(IsLinearizable(
      {From(0, 9, Set("x", "1"), Done()), From(0, 9, Set("y", "1"), Done()), sees_x, misses_y}));
}

TEST(HistoryTest, KeysOfSeveralCallsThatOverlapAreCheckedAsOne) {
  // x and z meet only by way of y.
  EXPECT_FALSE(IsLinearizable({From(0, 9, MultiSet({"x", "y"}, {"1", "1"}), Done()),
                               From(0, 9, MultiSet({"y", "z"}, {"2", "2"}), Done()),
                               From(1, 2, Get("z"), Value("2")), From(3, 4, Get("x"), Nothing()),
                               From(10, 11, Get("y"), Value("2"))}));
}

// What a partition leaves behind: many calls without an answer, each of which may still happen.
StoreHistory ManyUnknownWrites(const StoreAnswer& last) {
  StoreHistory history;
  for (int i = 0; i < 8; ++i) {
    history.push_back(From(i, i + 1, Set("k", "lost " + std::to_string(i)), Unknown()));
    history.push_back(From(i, i + 1, Append("k", "x"), Unknown()));
  }
  for (int i = 0; i < 40; ++i) {
    const std::int64_t time = 100 + 10 * i;
    history.push_back(From(time, time + 12, Set("k", std::to_string(i)), Done()));
    history.push_back(From(time + 14, time + 16, Get("k"), Value(std::to_string(i))));
  }
  history.push_back(From(1000, 1001, Get("k"), last));
  return history;
}

TEST(HistoryTest, ManyUnknownWritesDoNotDrownTheSearch) {
  constexpr std::size_t kFew = 100'000;
  EXPECT_EQ(CheckStore(ManyUnknownWrites(Value("39")), kFew).answer, Answer::kLinearizable);
  EXPECT_EQ(CheckStore(ManyUnknownWrites(Value("lost 7")), kFew).answer, Answer::kLinearizable);
  EXPECT_EQ(CheckStore(ManyUnknownWrites(Value("39xx")), kFew).answer, Answer::kLinearizable);
  EXPECT_EQ(CheckStore(ManyUnknownWrites(Value("38")), kFew).answer, Answer::kNotLinearizable);
}

// Appends that overlap, some of them without an answer, and one read after all.
StoreHistory ManyAppends(const std::string& seen) {
  StoreHistory history;
  for (char c = 'a'; c <= 'j'; ++c) {
    history.push_back(From(0, 100, Append("log", std::string(1, c)), Done()));
    history.push_back(From(0, 100, Append("log", std::string(1, c - 'a' + 'A')), Unknown()));
  }
  history.push_back(From(200, 201, Get("log"), Value(seen)));
  return history;
}

TEST(HistoryTest, OrderOfManyAppendsIsFoundByWhatIsReadOfThem) {
  constexpr std::size_t kFew = 10'000;
  EXPECT_EQ(CheckStore(ManyAppends("FjihDAgBfedcbaC"), kFew).answer, Answer::kLinearizable);
  // One that is done is missing; one is there twice.
  EXPECT_EQ(CheckStore(ManyAppends("FihDAgBfedcbaC"), kFew).answer, Answer::kNotLinearizable);
  EXPECT_EQ(CheckStore(ManyAppends("FjihDAgBfedcbaF"), kFew).answer, Answer::kNotLinearizable);
}

TEST(HistoryTest, SearchThatTakesTooLongSaysThatItGaveUp) {
  const StoreVerdict verdict = CheckStore(ManyUnknownWrites(Value("38")), 10);
  EXPECT_EQ(verdict.answer, Answer::kGaveUp);
  EXPECT_NE(verdict.explanation.find("gave up after 10 configurations"), std::string::npos);
}

// Histories of a store that is right by construction: every call takes effect at one instant
// between its two ends. Some answers are lost, and some of those calls then take effect later or
// never.
struct Shape {
  int clients = 0;
  int calls = 0;  // of each
  int lost = 0;   // of 10
};

StoreCall AnyCall(Chance& chance, const std::string& unique) {
  const std::string key = chance.Happens(1, 2) ? "a" : "b";
  switch (chance.Below(8)) {
    case 0:
      return Set(key, unique);
    case 1:
      return Add(key, 1);
    case 2:
      return CompareSet(key, chance.Happens(1, 2) ? "" : "1", unique);
    case 3:
      return Append(key, ";");
    case 4:
      return Delete(key);
    case 5:
      return MultiSet({"a", "b"}, {unique, unique});
    case 6:
      return MultiGet({"a", "b"});
    default:
      return Get(key);
  }
}

StoreHistory RightHistory(Chance& chance, const Shape& shape) {
  StoreHistory history;
  std::multimap<std::int64_t, std::size_t> effects;
  for (int client = 0; client < shape.clients; ++client) {
    std::int64_t now = 0;
    for (int i = 0; i < shape.calls; ++i) {
      const std::int64_t call = now + chance.Below(20);
      const std::int64_t effect = call + chance.Below(20);
      now = effect + chance.Below(20);
      const bool lost = chance.Happens(shape.lost, 10);
      const std::string unique = std::to_string(1000 * (client + 1) + i);
      StoreOperation operation =
          From(call, now, AnyCall(chance, unique), lost ? Unknown() : Done());
      operation.client = client;
      if (!lost) {
        effects.emplace(effect, history.size());
      } else if (chance.Happens(1, 2)) {
        effects.emplace(effect + chance.Below(200), history.size());
      }
      history.push_back(std::move(operation));
    }
  }
  StoreState state;
  for (const auto& [time, index] : effects) {
    StoreOperation& operation = history[index];
    StoreAnswer answer = Apply(operation.call, state);
    if (operation.span.known()) operation.answer = std::move(answer);
  }
  return history;
}

TEST(HistoryTest, WhatARightStoreDoesIsLinearizable) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Chance chance(seed);
    ASSERT_TRUE(IsLinearizable(RightHistory(chance, {.clients = 6, .calls = 40, .lost = 1})))
        << "seed " << seed;
  }
}

// Tries every order, with no memory and no thought.
bool SomeOrderExplains(const StoreHistory& history, std::set<std::size_t>& placed,
                       const StoreState& state) {
  const auto is_left = [&](std::size_t i) {
    return !placed.contains(i) && history[i].span.known();
  };
  bool complete = true;
  for (std::size_t i = 0; i < history.size(); ++i) complete = complete && !is_left(i);
  if (complete) return true;
  for (std::size_t i = 0; i < history.size(); ++i) {
    bool may_be_next = !placed.contains(i);
    for (std::size_t j = 0; j < history.size(); ++j) {
      if (is_left(j) && history[j].span.return_ns < history[i].span.call_ns) may_be_next = false;
    }
    if (!may_be_next) continue;
    StoreState next = state;
    const StoreAnswer answer = Apply(history[i].call, next);
    if (history[i].span.known() && answer != history[i].answer) continue;
    placed.insert(i);
    if (SomeOrderExplains(history, placed, next)) return true;
    placed.erase(i);
  }
  return false;
}

// Makes one answer another call's.
void Spoil(Chance& chance, StoreHistory& history) {
  StoreOperation& spoilt = history[static_cast<std::size_t>(chance.Below(history.size()))];
  if (spoilt.span.known()) spoilt.answer = chance.OneOf(history).answer;
  spoilt.answer.kind = spoilt.span.known() ? StoreAnswer::Kind::kDone : StoreAnswer::Kind::kUnknown;
}

TEST(HistoryTest, AgreesWithTryingEveryOrder) {
  int right = 0;
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 5'000; ++seed) {
    Chance chance(seed);
    StoreHistory history = RightHistory(chance, {.clients = 3, .calls = 2, .lost = 2});
    Spoil(chance, history);
    std::set<std::size_t> placed;
    const bool expected = SomeOrderExplains(history, placed, {});
    ASSERT_EQ(CheckStore(history).answer == Answer::kLinearizable, expected)
        << "seed " << seed << "\n"
        << ToText(history);
    ++(expected ? right : wrong);
  }
  EXPECT_GT(right, 500);
  EXPECT_GT(wrong, 500);
}

}  // namespace
}  // namespace muster::linearizability
