#include "trainer/io/formats/value_tree.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster::trainer {

const char* PythonName(ValueKind kind) {
  switch (kind) {
    case ValueKind::kNone:
      return "None";
    case ValueKind::kBool:
      return "bool";
    case ValueKind::kInt:
      return "int";
    case ValueKind::kFloat:
      return "float";
    case ValueKind::kString:
      return "str";
    case ValueKind::kTensor:
      return "Tensor";
    case ValueKind::kList:
      return "list";
    case ValueKind::kTuple:
      return "tuple";
    case ValueKind::kDict:
      return "dict";
  }
  std::abort();
}

std::string ToString(const ValueKey& key) {
  if (const auto* text = std::get_if<std::string>(&key)) return absl::StrCat("'", *text, "'");
  return absl::StrCat(std::get<std::int64_t>(key));
}

std::string ToString(const TreePlace& place) {
  std::string text;
  for (const ValueKey& key : place) absl::StrAppend(&text, "[", ToString(key), "]");
  return text;
}

absl::Status WrongEntry(const std::string& key, std::optional<ValueKind> found, ValueKind wanted) {
  if (!found) return absl::InvalidArgumentError(absl::StrCat("'", key, "' is missing"));
  return absl::InvalidArgumentError(
      absl::StrCat("'", key, "' is of type ", PythonName(*found), ", not ", PythonName(wanted)));
}

namespace {

struct Names {
  Dtype dtype;
  std::size_t size;
  const char* python;
  const char* storage_class;  // torch/storage.py, _dtype_to_storage_type_map
  const char* safetensors;
};

// In the order of Dtype.
constexpr std::array<Names, 10> kNames = {{
    {Dtype::kFloat64, 8, "float64", "DoubleStorage", "F64"},
    {Dtype::kFloat32, 4, "float32", "FloatStorage", "F32"},
    {Dtype::kFloat16, 2, "float16", "HalfStorage", "F16"},
    {Dtype::kBfloat16, 2, "bfloat16", "BFloat16Storage", "BF16"},
    {Dtype::kInt64, 8, "int64", "LongStorage", "I64"},
    {Dtype::kInt32, 4, "int32", "IntStorage", "I32"},
    {Dtype::kInt16, 2, "int16", "ShortStorage", "I16"},
    {Dtype::kInt8, 1, "int8", "CharStorage", "I8"},
    {Dtype::kUint8, 1, "uint8", "ByteStorage", "U8"},
    {Dtype::kBool, 1, "bool", "BoolStorage", "BOOL"},
}};

const Names& NamesOf(Dtype dtype) {
  return kNames[static_cast<std::size_t>(dtype)];
}

}  // namespace

std::size_t ElementSize(Dtype dtype) {
  return NamesOf(dtype).size;
}

bool AreBools(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0 || byte == 1; });
}

const char* PythonName(Dtype dtype) {
  return NamesOf(dtype).python;
}

const char* StorageClass(Dtype dtype) {
  return NamesOf(dtype).storage_class;
}

std::optional<Dtype> FromStorageClass(const std::string& name) {
  for (const Names& names : kNames) {
    if (name == names.storage_class) return names.dtype;
  }
  return std::nullopt;
}

const char* SafetensorsName(Dtype dtype) {
  return NamesOf(dtype).safetensors;
}

std::optional<Dtype> FromSafetensorsName(const std::string& name) {
  for (const Names& names : kNames) {
    if (name == names.safetensors) return names.dtype;
  }
  return std::nullopt;
}

namespace {

using nlohmann::json;

constexpr int kDeepestTree = 100;  // as in a file of torch.save
constexpr char kDict[] = "dict";
constexpr char kOrderedDict[] = "ordered_dict";
constexpr char kTuple[] = "tuple";
constexpr char kTensor[] = "tensor";
constexpr char kFloat[] = "float";

json Tagged(const char* tag, json content) {
  json object = json::object();
  object[tag] = std::move(content);
  return object;
}

json FloatJson(double number) {
  if (std::isfinite(number)) return number;
  return Tagged(kFloat, std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
}

json ItemsJson(const NamedTree::List& items) {
  json array = json::array();
  for (const NamedTree& item : items) array.push_back(TreeJson(item));
  return array;
}

absl::Status BadTree(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("it is damaged: its checkpoint has ", what));
}

absl::StatusOr<NamedTree> ReadNode(const json& value, int depth);

absl::StatusOr<NamedTree::List> ReadItems(const json& array, int depth) {
  NamedTree::List items;
  if (!array.is_array()) return BadTree("a list is missing");
  for (const json& item : array) {
    absl::StatusOr<NamedTree> read = ReadNode(item, depth + 1);
    if (!read.ok()) return read.status();
    items.push_back(*std::move(read));
  }
  return items;
}

absl::StatusOr<ValueKey> ReadKey(const json& key) {
  if (key.is_string()) return ValueKey(key.get<std::string>());
  const bool fits =
      key.is_number_integer() &&
      (!key.is_number_unsigned() ||
       key.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
  if (!fits) return BadTree("a key that is neither text nor an integer");
  return ValueKey(key.get<std::int64_t>());
}

absl::StatusOr<NamedTree> ReadDict(const json& pairs, bool ordered, int depth) {
  if (!pairs.is_array()) return BadTree("a dict that is not a list of pairs");
  NamedTree::Dict dict(ordered);
  std::set<ValueKey> keys;
  for (const json& pair : pairs) {
    if (!pair.is_array() || pair.size() != 2) return BadTree("a dict that is not a list of pairs");
    absl::StatusOr<ValueKey> key = ReadKey(pair[0]);
    if (!key.ok()) return key.status();
    absl::StatusOr<NamedTree> value = ReadNode(pair[1], depth + 1);
    if (!value.ok()) return value.status();
    if (!keys.insert(*key).second) return BadTree(absl::StrCat("two of ", ToString(*key)));
    dict.Append(*std::move(key), *std::move(value));
  }
  return NamedTree(std::move(dict));
}

absl::StatusOr<NamedTree> ReadTagged(const std::string& tag, const json& content, int depth) {
  if (tag == kDict || tag == kOrderedDict) return ReadDict(content, tag == kOrderedDict, depth);
  if (tag == kTuple) {
    absl::StatusOr<NamedTree::List> items = ReadItems(content, depth);
    if (!items.ok()) return items.status();
    return NamedTree::Tuple(*std::move(items));
  }
  if (tag == kTensor && content.is_string()) {
    return NamedTree(TensorName{content.get<std::string>()});
  }
  if (tag == kFloat && content == "nan") return NamedTree(std::nan(""));
  if (tag == kFloat && content == "inf") return NamedTree(HUGE_VAL);
  if (tag == kFloat && content == "-inf") return NamedTree(-HUGE_VAL);
  return BadTree(absl::StrCat("a \"", tag, "\" that cannot be understood"));
}

absl::StatusOr<NamedTree> ReadNode(const json& value, int depth) {
  if (depth > kDeepestTree) return BadTree("lists or dicts within one another too deeply");
  switch (value.type()) {
    case json::value_t::null:
      return NamedTree();
    case json::value_t::boolean:
      return NamedTree(value.get<bool>());
    case json::value_t::number_integer:
      return NamedTree(value.get<std::int64_t>());
    case json::value_t::number_unsigned:
      if (value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
        return BadTree("a number that is too large");
      }
      return NamedTree(value.get<std::int64_t>());
    case json::value_t::number_float:
      return NamedTree(value.get<double>());
    case json::value_t::string:
      return NamedTree(value.get<std::string>());
    case json::value_t::array: {
      absl::StatusOr<NamedTree::List> items = ReadItems(value, depth);
      if (!items.ok()) return items.status();
      return NamedTree(*std::move(items));
    }
    default:
      break;
  }
  if (!value.is_object() || value.size() != 1) {
    return BadTree("an object that does not say what it is");
  }
  return ReadTagged(value.begin().key(), value.begin().value(), depth);
}

}  // namespace

json TreeJson(const NamedTree& tree) {
  switch (tree.kind()) {
    case ValueKind::kNone:
      return json();
    case ValueKind::kBool:
      return *tree.boolean();
    case ValueKind::kInt:
      return *tree.integer();
    case ValueKind::kFloat:
      return FloatJson(*tree.floating());
    case ValueKind::kString:
      return *tree.string();
    case ValueKind::kTensor:
      return Tagged(kTensor, tree.tensor()->name);
    case ValueKind::kList:
      return ItemsJson(*tree.list());
    case ValueKind::kTuple:
      return Tagged(kTuple, ItemsJson(*tree.list()));
    case ValueKind::kDict: {
      json pairs = json::array();
      for (const auto& [key, value] : *tree.dict()) {
        json pair = json::array();
        std::visit([&pair](const auto& plain) { pair.push_back(plain); }, key);
        pair.push_back(TreeJson(value));
        pairs.push_back(std::move(pair));
      }
      return Tagged(tree.dict()->ordered() ? kOrderedDict : kDict, std::move(pairs));
    }
  }
  std::abort();
}

absl::StatusOr<NamedTree> ReadTreeJson(const json& json) {
  return ReadNode(json, 1);
}

}  // namespace muster::trainer
