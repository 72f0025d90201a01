// The bytes of every version of the protocol, split at every position.
#include "rendezvous/wire/tcpstore_codec.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "test/rendezvous/fronts/tcpstore_bytes.h"

namespace muster::rendezvous {
namespace {

using Result = TcpStoreDecoder::Result;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Name(TcpStoreOp op) {
  static const char* const names[] = {
      "validate",   "set",        "compare-set", "get",       "add",       "check",       "wait",
      "num-keys",   "delete-key", "append",      "multi-get", "multi-set", "cancel-wait", "ping",
      "queue-push", "queue-pop",  "queue-len",   "list-keys", "barrier",   "watch-key"};
  return names[static_cast<std::size_t>(op)];
}

// "add [init/] 1"; a long string shows only its length.
std::string Shown(const TcpStoreRequest& request) {
  std::vector<std::string> strings;
  for (const std::string_view string : request.strings) {
    strings.push_back(string.size() > 100 ? absl::StrCat(string.size(), " bytes")
                                          : std::string(string));
  }
  const std::string text =
      absl::StrCat(Name(request.op), " [", absl::StrJoin(strings, ","), "] ", request.number);
  return request.legacy ? absl::StrCat("legacy ", text) : text;
}

// One connection. Logs what it decodes, with "broken: why" and "grace".
class Connection {
 public:
  explicit Connection(DialectHint& hint, const TcpStoreDecodeLimits& limits = {})
      : limits_(limits), decoder_(limits_, hint) {}

  std::vector<std::string> Feed(std::string_view bytes) {
    std::vector<std::string> log;
    for (;;) {
      TcpStoreRequest request;
      switch (decoder_.Next(bytes, request)) {
        case Result::kRequest:
          log.push_back(Shown(request));
          continue;
        case Result::kNeedsMore:
          EXPECT_THAT(bytes, IsEmpty());
          return log;
        case Result::kNeedsGrace:
          EXPECT_THAT(bytes, IsEmpty());
          log.push_back("grace");
          return log;
        case Result::kBroken:
          log.push_back("broken: " + decoder_.error());
          return log;
      }
    }
  }

  std::vector<std::string> EndGrace() {
    decoder_.EndGrace();
    return Feed("");
  }

  TcpStoreDecoder& decoder() { return decoder_; }

 private:
  const TcpStoreDecodeLimits limits_;
  TcpStoreDecoder decoder_;
};

struct Example {
  std::string bytes;
  std::string shown;
};

const std::string kBinary("\0\xff\x80", 3);

// The requests common to all dialects, with the numbers of 2.2 less `less`.
std::vector<Example> CommonExamples(int less) {
  const auto op = [less](std::uint8_t number) {
    return Op(static_cast<std::uint8_t>(number - less));
  };
  return {
      {op(opcode::kAdd) + String("init/") + Number(1), "add [init/] 1"},
      {op(opcode::kAdd) + String("/a") + Number(-5), "add [/a] -5"},
      {op(opcode::kSet) + String("/key") + String("value"), "set [/key,value] 0"},
      {op(opcode::kSet) + String("") + String(""), "set [,] 0"},
      {op(opcode::kSet) + String(kBinary) + String(kBinary),
       absl::StrCat("set [", kBinary, ",", kBinary, "] 0")},
      {op(opcode::kCompareSet) + String("k") + String("") + String("new"),
       "compare-set [k,,new] 0"},
      {op(opcode::kGet) + String("/key"), "get [/key] 0"},
      {op(opcode::kCheck) + Strings({}), "check [] 0"},
      {op(opcode::kCheck) + Strings({"a", "", "ccc"}), "check [a,,ccc] 0"},
      {op(opcode::kWait) + Strings({"a", "b"}), "wait [a,b] 0"},
      {op(opcode::kNumKeys), "num-keys [] 0"},
  };
}

std::vector<Example> V1Examples() {
  std::vector<Example> examples = CommonExamples(1);
  examples.push_back({Op(8) + String("/gone"), "delete-key [/gone] 0"});
  for (Example& example : examples) example.shown.insert(0, "legacy ");
  return examples;
}

std::vector<Example> V21Examples() {
  std::vector<Example> examples = CommonExamples(1);
  examples.push_back({Op(7) + String("/gone"), "delete-key [/gone] 0"});
  examples.push_back({Op(8) + String("/log") + String("more"), "append [/log,more] 0"});
  examples.push_back({Op(9) + Strings({"a", "b"}), "multi-get [a,b] 0"});
  examples.push_back({Op(10) + Number(2) + String("a") + String("1") + String("b") + String("2"),
                      "multi-set [a,1,b,2] 0"});
  examples.push_back({Op(11), "cancel-wait [] 0"});
  for (Example& example : examples) example.shown.insert(0, "legacy ");
  return examples;
}

std::vector<Example> V22Examples() {
  std::vector<Example> examples = CommonExamples(0);
  const std::vector<Example> more = {
      {Op(opcode::kDeleteKey) + String("/gone"), "delete-key [/gone] 0"},
      {Op(opcode::kAppend) + String("/log") + String("more"), "append [/log,more] 0"},
      {Op(opcode::kMultiGet) + Strings({"a"}), "multi-get [a] 0"},
      {Op(opcode::kMultiSet) + Number(0), "multi-set [] 0"},
      {Op(opcode::kMultiSet) + Number(1) + String("a") + String("1"), "multi-set [a,1] 0"},
      {Op(opcode::kCancelWait), "cancel-wait [] 0"},
      {Op(opcode::kPing) + Hex("a3 61 00 ff"), "ping [] 4278215075"},
      {Op(opcode::kQueuePush) + String("q") + String("item"), "queue-push [q,item] 0"},
      {Op(opcode::kQueuePop) + String("q"), "queue-pop [q] 0"},
      {Op(opcode::kQueueLength) + String("q"), "queue-len [q] 0"},
      {Op(opcode::kListKeys), "list-keys [] 0"},
      {Op(opcode::kBarrier) + String("b") + Number(3), "barrier [b] 3"},
  };
  examples.insert(examples.end(), more.begin(), more.end());
  return examples;
}

// A dialect, the first bytes of a connection, and its requests.
struct DialectCase {
  std::string name;
  std::string begin;
  std::vector<std::string> begun;
  TcpStoreDialect dialect;
  std::vector<Example> examples;
};

std::vector<DialectCase> DialectCases() {
  const std::string join = Op(3) + String("init/") + Number(1);
  const std::string shown = "legacy add [init/] 1";
  return {{"V1x", join, {shown}, TcpStoreDialect::k1x, V1Examples()},
          {"V21", join, {shown}, TcpStoreDialect::k21, V21Examples()},
          {"V22", Hello(), {}, TcpStoreDialect::k22, V22Examples()}};
}

class TcpStoreDialectTest : public ::testing::TestWithParam<DialectCase> {
 protected:
  DialectHint HintFor(const DialectCase& dialect) const {
    return dialect.dialect == TcpStoreDialect::k22 ? DialectHint() : DialectHint(dialect.dialect);
  }
};

TEST_P(TcpStoreDialectTest, EachRequestMayBeSplitAtEachByte) {
  for (const Example& example : GetParam().examples) {
    const std::string bytes = GetParam().begin + example.bytes;
    std::vector<std::string> expected = GetParam().begun;
    expected.push_back(example.shown);
    for (std::size_t first = 0; first <= bytes.size(); ++first) {
      for (std::size_t second = first; second <= bytes.size(); ++second) {
        DialectHint hint = HintFor(GetParam());
        Connection connection(hint);
        std::vector<std::string> log;
        for (const std::string& part :
             {bytes.substr(0, first), bytes.substr(first, second - first), bytes.substr(second)}) {
          for (std::string& line : connection.Feed(part)) log.push_back(std::move(line));
        }
        ASSERT_EQ(log, expected) << "split at " << first << " and " << second;
      }
    }
  }
}

TEST_P(TcpStoreDialectTest, AllRequestsComeByteByByteOnOneConnection) {
  DialectHint hint = HintFor(GetParam());
  Connection connection(hint);
  std::string bytes = GetParam().begin;
  std::vector<std::string> expected = GetParam().begun;
  for (const Example& example : GetParam().examples) {
    bytes += example.bytes;
    expected.push_back(example.shown);
  }
  std::vector<std::string> log;
  for (const char byte : bytes) {
    for (std::string& line : connection.Feed({&byte, 1})) log.push_back(std::move(line));
  }
  EXPECT_EQ(log, expected);
}

TEST_P(TcpStoreDialectTest, ThousandRequestsComeInOneWrite) {
  DialectHint hint = HintFor(GetParam());
  Connection connection(hint);
  std::string bytes = GetParam().begin;
  std::vector<std::string> expected = GetParam().begun;
  for (std::size_t i = 0; i < 1000; ++i) {
    const Example& example = GetParam().examples[i % GetParam().examples.size()];
    bytes += example.bytes;
    expected.push_back(example.shown);
  }
  EXPECT_EQ(connection.Feed(bytes), expected);
  EXPECT_LT(connection.decoder().buffered(), 64u) << "what comes whole is not copied";
}

INSTANTIATE_TEST_SUITE_P(All, TcpStoreDialectTest, ::testing::ValuesIn(DialectCases()),
                         [](const auto& info) { return info.param.name; });

class TcpStoreCodecTest : public ::testing::Test {
 protected:
  DialectHint hint_;
};

TEST_F(TcpStoreCodecTest, HelloMayBeSplitAnywhere) {
  for (std::size_t at = 1; at < Hello().size(); ++at) {
    Connection connection(hint_);
    EXPECT_THAT(connection.Feed(Hello().substr(0, at)), IsEmpty());
    EXPECT_THAT(connection.Feed(Hello().substr(at) + Op(opcode::kNumKeys)),
                ElementsAre("num-keys [] 0"));
    EXPECT_EQ(connection.decoder().dialect(), TcpStoreDialect::k22);
  }
}

TEST_F(TcpStoreCodecTest, SecondHelloIsRefused) {
  Connection connection(hint_);
  EXPECT_THAT(connection.Feed(Hello() + Hello()), ElementsAre("broken: opcode 0 is not known"));
}

TEST_F(TcpStoreCodecTest, LegacyConnectionMayBeginWithSet) {
  Connection connection(hint_);
  EXPECT_THAT(connection.Feed(Op(0)), IsEmpty());
  EXPECT_THAT(connection.Feed(String("k") + String("v")), ElementsAre("legacy set [k,v] 0"));
  EXPECT_THAT(connection.Feed(Op(0) + String("k") + String("w")),
              ElementsAre("legacy set [k,w] 0"));
}

TEST_F(TcpStoreCodecTest, WrongMagicIsAKeyThatIsTooLong) {
  Connection connection(hint_);
  EXPECT_THAT(connection.Feed(Hex("00 de ad be ef 0d a3 61 00 00")),
              ElementsAre(HasSubstr("a key has ")));
}

TEST_F(TcpStoreCodecTest, SevenAsFirstRequestWatches) {
  Connection callback(hint_);
  EXPECT_THAT(callback.Feed(Op(7) + String("/k") + Op(7) + String("/l")),
              ElementsAre("legacy watch-key [/k] 0", "legacy watch-key [/l] 0"));
  EXPECT_EQ(callback.decoder().dialect(), TcpStoreDialect::k1x);
  EXPECT_EQ(hint_.best(), TcpStoreDialect::k1x);
}

TEST_F(TcpStoreCodecTest, SevenAfterAnotherRequestDeletes) {
  Connection connection(hint_);
  EXPECT_THAT(connection.Feed(Op(6) + Op(7) + String("/k")),
              ElementsAre("legacy num-keys [] 0", "legacy delete-key [/k] 0"));
  EXPECT_EQ(connection.decoder().dialect(), TcpStoreDialect::k21);
}

TEST_F(TcpStoreCodecTest, SevenAsFirstRequestDeletesOnceTheJobIsKnownToBe21) {
  Connection other(hint_);
  other.Feed(Op(11));
  Connection connection(hint_);
  EXPECT_THAT(connection.Feed(Op(7) + String("/k")), ElementsAre("legacy delete-key [/k] 0"));
}

TEST_F(TcpStoreCodecTest, WhatIsCertainReplacesAGuess) {
  Connection guessed(hint_);
  guessed.Feed(Op(7) + String("/k"));
  EXPECT_EQ(hint_.best(), TcpStoreDialect::k1x);
  Connection certain(hint_);
  certain.Feed(Op(11));
  EXPECT_EQ(hint_.best(), TcpStoreDialect::k21);
  Connection guessed_again(hint_);
  EXPECT_THAT(guessed_again.Feed(Op(8) + String("/k")), IsEmpty()) << "the value is missing";
}

TEST_F(TcpStoreCodecTest, EightDeletesWhenNothingFollowsInTime) {
  Connection connection(hint_);
  EXPECT_THAT(connection.Feed(Op(8) + String("/k")), ElementsAre("grace"));
  EXPECT_THAT(connection.EndGrace(), ElementsAre("legacy delete-key [/k] 0"));
  EXPECT_EQ(connection.decoder().dialect(), TcpStoreDialect::k1x);
  // No more waiting on this connection, nor on others of the job.
  EXPECT_THAT(connection.Feed(Op(8) + String("/k")), ElementsAre("legacy delete-key [/k] 0"));
  Connection other(hint_);
  EXPECT_THAT(other.Feed(Op(8) + String("/k")), ElementsAre("legacy delete-key [/k] 0"));
}

TEST_F(TcpStoreCodecTest, EightAppendsWhenAByteFollows) {
  Connection connection(hint_);
  EXPECT_THAT(connection.Feed(Op(8) + String("/k") + Hex("04")), IsEmpty());
  EXPECT_EQ(connection.decoder().dialect(), TcpStoreDialect::k21);
  EXPECT_THAT(connection.Feed(String("more").substr(1)), ElementsAre("legacy append [/k,more] 0"));
}

TEST_F(TcpStoreCodecTest, EightAppendsWhenTheValueComesWithinTheGrace) {
  Connection connection(hint_);
  EXPECT_THAT(connection.Feed(Op(8) + String("/k")), ElementsAre("grace"));
  EXPECT_THAT(connection.Feed(String("more") + Op(6)),
              ElementsAre("legacy append [/k,more] 0", "legacy num-keys [] 0"));
  EXPECT_EQ(hint_.best(), TcpStoreDialect::k21);
}

TEST_F(TcpStoreCodecTest, EightAppendsWithItsValueThoughTheJobWasThoughtToBe1x) {
  hint_.Learn(TcpStoreDialect::k1x, false);
  Connection connection(hint_);
  EXPECT_THAT(connection.Feed(Op(8) + String("/k") + String("more")),
              ElementsAre("legacy append [/k,more] 0"));
}

TEST_F(TcpStoreCodecTest, UserMaySayWhichLegacyDialectItIs) {
  DialectHint one(TcpStoreDialect::k1x);
  Connection older(one);
  EXPECT_THAT(older.Feed(Op(6) + Op(7) + String("/k") + Op(8) + String("/k") + Op(9)),
              ElementsAre("legacy num-keys [] 0", "legacy watch-key [/k] 0",
                          "legacy delete-key [/k] 0", "broken: opcode 9 is not known"));
  DialectHint two(TcpStoreDialect::k21);
  Connection newer(two);
  EXPECT_THAT(newer.Feed(Op(7) + String("/k") + Op(8) + String("/k")),
              ElementsAre("legacy delete-key [/k] 0"));
}

TEST_F(TcpStoreCodecTest, UnknownOpcodesBreak) {
  for (const int opcode : {12, 13, 0x47, 0x16, 0xff}) {
    Connection legacy(hint_);
    EXPECT_THAT(legacy.Feed(Op(static_cast<std::uint8_t>(opcode))),
                ElementsAre(absl::StrCat("broken: opcode ", opcode, " is not known")));
  }
  Connection newest(hint_);
  EXPECT_THAT(newest.Feed(Hello() + Op(19)), ElementsAre("broken: opcode 19 is not known"));
}

// A port scanner's nine bytes once made c10d's server allocate 2^60 (pytorch issue 106294).
TEST_F(TcpStoreCodecTest, LengthsBeyondTheLimitBreakBeforeAByteIsKept) {
  for (const std::uint64_t length :
       {std::uint64_t{8193}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    Connection connection(hint_);
    EXPECT_THAT(
        connection.Feed(Hello() + Op(opcode::kGet) + Raw(length)),
        ElementsAre(absl::StrCat("broken: a key has ", length, " bytes, the limit is 8192")));
    EXPECT_LT(connection.decoder().buffered(), 64u);
  }
  for (const std::uint64_t length : {(std::uint64_t{256} << 20) + 1, ~std::uint64_t{0}}) {
    for (const std::string& before :
         {Op(opcode::kSet) + String("k"), Op(opcode::kCompareSet) + String("k") + String("v"),
          Op(opcode::kMultiSet) + Number(2) + String("k") + String("v") + String("l")}) {
      Connection connection(hint_);
      EXPECT_THAT(connection.Feed(Hello() + before + Raw(length)),
                  ElementsAre(absl::StrCat("broken: a value has ", length,
                                           " bytes, the limit is 268435456")));
      EXPECT_LT(connection.decoder().buffered(), 64u);
    }
  }
}

TEST_F(TcpStoreCodecTest, CountsBeyondTheLimitBreak) {
  for (const std::uint64_t count :
       {std::uint64_t{131'073}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    for (const std::uint8_t op :
         {opcode::kCheck, opcode::kWait, opcode::kMultiGet, opcode::kMultiSet}) {
      Connection connection(hint_);
      EXPECT_THAT(
          connection.Feed(Hello() + Op(op) + Raw(count)),
          ElementsAre(absl::StrCat("broken: a request has ", count, " keys, the limit is 131072")));
    }
  }
}

TEST_F(TcpStoreCodecTest, RequestMayNotGrowForever) {
  Connection connection(hint_, {.value_bytes = 100, .request_bytes = 1000});
  std::string bytes = Hello() + Op(opcode::kMultiSet) + Number(1000);
  for (int i = 0; i < 9; ++i) bytes += String("k") + String(std::string(100, 'v'));
  EXPECT_THAT(connection.Feed(bytes), ElementsAre("broken: a request has more than 1000 bytes"));
}

TEST_F(TcpStoreCodecTest, LargestKeyAndValuePass) {
  Connection connection(hint_);
  EXPECT_THAT(connection.Feed(Hello() + Op(opcode::kSet) + String(std::string(8192, 'k')) +
                              String(std::string(8 << 20, 'v'))),
              ElementsAre("set [8192 bytes,8388608 bytes] 0"));
}

// A gloo group of 100,000 ranks waits for all of their keys in one request.
TEST_F(TcpStoreCodecTest, WaitForHundredThousandKeysIsKeptOnce) {
  std::string bytes = Hello() + Op(opcode::kWait) + Number(100'000);
  for (int i = 0; i < 100'000; ++i) {
    bytes += String(absl::StrCat("/default_pg/0//cpu//0/", i));
  }
  Connection connection(hint_);
  std::string_view left = bytes;
  while (left.size() > 1440) {
    ASSERT_THAT(connection.Feed(left.substr(0, 1440)), IsEmpty());
    left.remove_prefix(1440);
    ASSERT_LE(connection.decoder().buffered(), 2 * bytes.size());
  }
  TcpStoreRequest request;
  ASSERT_EQ(connection.decoder().Next(left, request), Result::kRequest);
  EXPECT_EQ(request.op, TcpStoreOp::kWait);
  ASSERT_EQ(request.strings.size(), 100'000u);
  EXPECT_EQ(request.strings[0], "/default_pg/0//cpu//0/0");
  EXPECT_EQ(request.strings[99'999], "/default_pg/0//cpu//0/99999");
  EXPECT_EQ(connection.decoder().Next(left, request), Result::kNeedsMore);
  EXPECT_LT(connection.decoder().buffered(), 8192u) << "nothing is kept of it";
}

TEST_F(TcpStoreCodecTest, RepliesAreThoseBytes) {
  std::string out;
  AppendByte(kWaitCancelled, out);
  AppendNonce(0x61a3, out);
  AppendNumber(-2, out);
  AppendString("vm", out);
  EXPECT_EQ(out, Hex("01 a3 61 00 00 fe ff ff ff ff ff ff ff 02 00 00 00 00 00 00 00 76 6d"));
}

}  // namespace
}  // namespace muster::rendezvous
