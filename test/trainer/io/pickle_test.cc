// Hand-written pickles, with the opcodes of Python's pickletools.py; interop_test has Python's own.
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "trainer/io/formats/pickle_reader.h"
#include "trainer/io/formats/torch_archive.h"

namespace muster::trainer {
namespace {

using namespace std::string_literals;

std::string PickleErrorOf(const std::string& body, const PickleLimits& limits = {}) {
  const auto contents = ReadPickle("\x80\x02" + body, limits);
  return contents.ok() ? "none" : std::string(contents.status().message());
}

std::string Text(const std::string& text) {
  return "X"s + static_cast<char>(text.size()) + "\0\0\0"s + text;
}

// A float32 storage "0" of `elements` (up to 255), as a persistent id.
std::string StorageOf(int elements) {
  return "(" + Text("storage") + "ctorch\nFloatStorage\n" + Text("0") + Text("cpu") + "K" +
         static_cast<char>(elements) + "tQ";
}

// A tensor on `storage`; the numbers are opcodes.
std::string TensorOn(const std::string& storage, const std::string& offset,
                     const std::string& sizes, const std::string& strides) {
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + storage + offset + "(" + sizes + "t(" + strides +
         "t\x89" + "ccollections\nOrderedDict\n)RtR";
}

TEST(PickleTest, WhatIsWrittenIsRead) {
  StoredDict inner(/*ordered=*/true);
  inner.Append("tensor",
               StoredTensor{.storage = 1, .offset = 2, .sizes = {2, 3}, .strides = {3, 1}});
  inner.Append(std::int64_t{-5}, StoredValue::Tuple({StoredValue(), true, 0.1}));
  StoredDict dict;
  dict.Append("inner", inner);
  dict.Append("numbers",
              StoredValue::List{0, 255, 256, -1, std::numeric_limits<std::int64_t>::min(),
                                std::numeric_limits<std::int64_t>::max()});
  dict.Append("first", StoredTensor{.storage = 0, .sizes = {}, .strides = {}});
  const std::vector<Storage> storages = {{"0", Dtype::kBool, 1}, {"1", Dtype::kFloat64, 8}};
  const auto pickle = WritePickle(dict, storages);
  ASSERT_TRUE(pickle.ok()) << pickle.status();
  const auto contents = ReadPickle(*pickle);
  ASSERT_TRUE(contents.ok()) << contents.status();
  // Storages are numbered in order of appearance: "1" is first.
  ASSERT_EQ(contents->storages.size(), 2u);
  EXPECT_EQ(contents->storages[0].key, "1");
  EXPECT_EQ(contents->storages[0].dtype, Dtype::kFloat64);
  EXPECT_EQ(contents->storages[0].elements, 8);
  const StoredValue* read = contents->value.Find("inner");
  ASSERT_NE(read, nullptr);
  EXPECT_TRUE(read->dict()->ordered());
  ASSERT_NE(read->Find("tensor"), nullptr);
  const auto* tensor = read->Find("tensor")->tensor();
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->storage, 0u);
  EXPECT_EQ(tensor->offset, 2);
  EXPECT_EQ(tensor->sizes, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(tensor->strides, (std::vector<std::int64_t>{3, 1}));
  const StoredValue* tuple = read->Find(std::int64_t{-5});
  ASSERT_NE(tuple, nullptr);
  EXPECT_EQ(tuple->kind(), ValueKind::kTuple);
  EXPECT_EQ(*(*tuple->list())[2].floating(), 0.1);
  const StoredValue::List& numbers = *contents->value.Find("numbers")->list();
  ASSERT_EQ(numbers.size(), 6u);
  EXPECT_EQ(*numbers[1].integer(), 255);
  EXPECT_EQ(*numbers[3].integer(), -1);
  EXPECT_EQ(*numbers[4].integer(), std::numeric_limits<std::int64_t>::min());
  // Writing what was read gives the same bytes.
  EXPECT_EQ(WritePickle(contents->value, contents->storages).value(), *pickle);
}

TEST(PickleTest, AnEntryOfAnotherKindIsToldByItsName) {
  StoredDict dict;
  dict.Set("epoch", "three");
  dict.Set("step", 3);
  const StoredValue value(dict);
  EXPECT_EQ(value.GetInt("epoch").status().message(), "'epoch' is of type str, not int");
  EXPECT_EQ(value.GetInt("lr").status().message(), "'lr' is missing");
  EXPECT_EQ(StoredValue(3).GetInt("lr").status().message(), "'lr' is missing");
  EXPECT_EQ(value.GetFloat("step").value(), 3.0);
}

TEST(PickleTest, AKeyThatIsSetAgainKeepsItsPlace) {
  const auto contents =
      ReadPickle("\x80\x02}(" + Text("a") + "K\1" + Text("b") + "K\2" + Text("a") + "K\3u.");
  ASSERT_TRUE(contents.ok()) << contents.status();
  ASSERT_EQ(contents->value.dict()->size(), 2u);
  EXPECT_EQ(contents->value.dict()->begin()->first, ValueKey("a"));
  EXPECT_EQ(contents->value.GetInt("a").value(), 3);
}

TEST(PickleTest, FunctionsThatCouldDoHarmAreRefusedByName) {
  EXPECT_EQ(
      PickleErrorOf("cposix\nsystem\n(" + Text("true") + "tR."),
      "it holds posix.system, which is not read here; save a state_dict(), and plain numbers, "
      "strings, lists and dicts");
  EXPECT_NE(PickleErrorOf("c__builtin__\neval\n(" + Text("1") + "tR.").find("__builtin__.eval"),
            std::string::npos);
  EXPECT_EQ(PickleErrorOf(")\x81."),
            "its pickle has opcode 0x81, which no checkpoint of plain values takes");
}

TEST(PickleTest, ATensorOutsideItsStorageIsRefused) {
  EXPECT_EQ(PickleErrorOf(TensorOn(StorageOf(6), "K\0"s, "K\2K\3", "K\3K\1") + "."), "none");
  EXPECT_EQ(PickleErrorOf(TensorOn(StorageOf(6), "K\6", "K\0"s, "K\1") + "."), "none");
  const std::string outside = "its pickle is damaged: a tensor is out of bounds";
  EXPECT_EQ(PickleErrorOf(TensorOn(StorageOf(5), "K\0"s, "K\2K\3", "K\3K\1") + "."), outside);
  EXPECT_EQ(PickleErrorOf(TensorOn(StorageOf(6), "K\1", "K\2K\3", "K\3K\1") + "."), outside);
  EXPECT_EQ(PickleErrorOf(TensorOn(StorageOf(6), "K\7", "K\0"s, "K\1") + "."), outside);
  EXPECT_EQ(PickleErrorOf(TensorOn(StorageOf(6), "J\xff\xff\xff\xff", "K\1", "K\1") + "."),
            outside);
  // 2^62 * 4 steps would overflow to 0.
  EXPECT_EQ(
      PickleErrorOf(TensorOn(StorageOf(6), "K\0"s, "K\5", "\x8a\x08\0\0\0\0\0\0\0\x40"s) + "."),
      outside);
  EXPECT_EQ(PickleErrorOf(TensorOn(StorageOf(6), "K\0"s, "J\xff\xff\xff\xff", "K\1") + "."),
            "its pickle is damaged: a tensor has a negative size");
  // A copy would have 2^40 elements.
  EXPECT_EQ(
      PickleErrorOf(TensorOn(StorageOf(6), "K\0"s, "\x8a\x08\0\0\0\0\0\1\0\0"s, "K\0"s) + "."),
      "its pickle is damaged: a tensor has more elements than its storage (expand())");
}

TEST(PickleTest, AStorageHasOneTypeAndLength) {
  EXPECT_EQ(PickleErrorOf("(" + TensorOn(StorageOf(6), "K\0"s, "K\1", "K\1") +
                          TensorOn(StorageOf(7), "K\0"s, "K\1", "K\1") + "t."),
            "its pickle is damaged: a storage has two types");
  EXPECT_NE(PickleErrorOf(StorageOf(6) + ".").find("a storage that is not a tensor's"),
            std::string::npos);
}

TEST(PickleTest, AListThatHoldsItselfEnds) {
  EXPECT_EQ(PickleErrorOf("]q\0h\0a."s),
            "its pickle has lists or dicts within one another too deeply");
  EXPECT_EQ(PickleErrorOf(std::string(200, '(') + std::string(200, 't') + "."),
            "its pickle has lists or dicts within one another too deeply");
}

TEST(PickleTest, AFewBytesDoNotBecomeMuchMemory) {
  // Each list holds the one before twice; the tree would have 2^60 of them.
  std::string doubling = "]q\0"s;
  for (int i = 1; i <= 60; ++i) {
    const char before = static_cast<char>(i - 1);
    doubling += "](h"s + before + "h" + before + "eq" + static_cast<char>(i);
  }
  EXPECT_EQ(PickleErrorOf("(" + doubling + "t.", {.objects = 10'000}),
            "its pickle has too many values");
  // A string of 100 bytes, twenty times.
  std::string repeated = "(" + Text(std::string(100, 'a')) + "q\0"s;
  for (int i = 1; i < 20; ++i) repeated += "h\0"s;
  EXPECT_EQ(PickleErrorOf(repeated + "t."), "none");
  EXPECT_EQ(PickleErrorOf(repeated + "t.", {.string_bytes = 1999}), "its pickle has too much text");
  EXPECT_EQ(PickleErrorOf("(NNNNt.", {.objects = 4}), "its pickle has too many objects");
}

TEST(PickleTest, TheStackIsNeverPoppedBelowItsBottomOrAMark) {
  for (const std::string& body :
       {"."s,    "t."s,      "a."s,        "s."s,    "e."s,    "u."s,        "R."s,
        "Q."s,   "b."s,      "\x85."s,     "\x86."s, "\x87."s, "q\0."s,      "h\0."s,
        "](a."s, "}K\1(s."s, "K\1(\x85."s, "NN."s,   "(N."s,   "]K\1K\2s."s, "}(K\1u."s,
        "NNR."s, "NQ."s,     "N}b."s,      "}]b."s}) {
    EXPECT_NE(PickleErrorOf(body), "none") << testing::PrintToString(body);
  }
}

TEST(PickleTest, ItIsRefusedWhereverItIsCutShort) {
  const std::string whole = "\x80\x02}(" + Text("weight") +
                            TensorOn(StorageOf(6), "K\0"s, "K\2K\3", "K\3K\1") + Text("lr") +
                            "G\x3f\xb9\x99\x99\x99\x99\x99\x9a" + "u.";
  ASSERT_TRUE(ReadPickle(whole).ok()) << ReadPickle(whole).status();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // Separate memory, so that reading beyond its end is detected.
    const std::vector<char> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(ReadPickle({part.data(), part.size()}).ok()) << size;
  }
}

TEST(PickleTest, ATreeThatIsTooDeepIsNotWritten) {
  StoredValue value;
  for (int i = 0; i < 99; ++i) value = StoredValue::List{std::move(value)};
  EXPECT_TRUE(ReadPickle(WritePickle(value, {}).value()).ok());
  EXPECT_EQ(WritePickle(StoredValue::List{value}, {}).status().message(),
            "lists or dicts are within one another too deeply");
}

}  // namespace
}  // namespace muster::trainer
