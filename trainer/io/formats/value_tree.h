// A tree of plain Python values, as stored in a pickle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::trainer {

// In the order of BasicValue's alternatives.
enum class ValueKind { kNone, kBool, kInt, kFloat, kString, kTensor, kList, kTuple, kDict };

// The name in Python: "None", "bool", "int", "float", "str", "Tensor", "list", "tuple", "dict".
const char* PythonName(ValueKind kind);

// The key of a dict. Checkpoints do not need Python's bool, float and tuple keys.
using ValueKey = std::variant<std::string, std::int64_t>;

// "'name'" or "7", for messages.
std::string ToString(const ValueKey& key);

// The error of BasicValue::Get...(). `found` is nullopt when there is no entry.
absl::Status WrongEntry(const std::string& key, std::optional<ValueKind> found, ValueKind wanted);

template <typename Tensor>
class BasicValue;

// A dict in insertion order, with unique keys. Lookup is linear: build an index to look up many
// keys of a large dict.
template <typename Tensor>
class BasicDict {
 public:
  using Item = std::pair<ValueKey, BasicValue<Tensor>>;

  // `ordered`: a collections.OrderedDict rather than a dict.
  explicit BasicDict(bool ordered = false) : ordered_(ordered) {}

  bool ordered() const { return ordered_; }
  std::size_t size() const { return items_.size(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

  // The value for `key`, or null. The pointer is valid until the dict changes.
  const BasicValue<Tensor>* Find(const ValueKey& key) const {
    for (const Item& item : items_) {
      if (item.first == key) return &item.second;
    }
    return nullptr;
  }
  // Replaces the value for `key`, or appends it if there is none.
  void Set(ValueKey key, BasicValue<Tensor> value) {
    for (Item& item : items_) {
      if (item.first != key) continue;
      item.second = std::move(value);
      return;
    }
    Append(std::move(key), std::move(value));
  }
  // Appends a key that is not in the dict yet. Does not check.
  void Append(ValueKey key, BasicValue<Tensor> value) {
    items_.emplace_back(std::move(key), std::move(value));
  }

 private:
  bool ordered_;
  std::vector<Item> items_;
};

// None, a bool, a 64-bit int, a float, a str, a tensor, or a list, tuple or dict of such values. A
// value type like std::vector: copies are deep (but tensors share their elements), and there is no
// locking. The tensor type depends on the use: at::Tensor in trainer/io/state_dict.h, a location in
// a file in trainer/io/formats/value_tree.h.
template <typename Tensor>
class BasicValue {
 public:
  using List = std::vector<BasicValue>;
  using Dict = BasicDict<Tensor>;

  BasicValue() = default;  // None
  BasicValue(bool value) : data_(value) {}
  BasicValue(int value) : data_(std::int64_t{value}) {}
  BasicValue(std::int64_t value) : data_(value) {}
  BasicValue(double value) : data_(value) {}
  BasicValue(const char* value) : data_(std::string(value)) {}
  BasicValue(std::string value) : data_(std::move(value)) {}
  BasicValue(Tensor value) : data_(std::move(value)) {}
  BasicValue(List value) : data_(std::move(value)) {}
  BasicValue(Dict value) : data_(std::move(value)) {}
  static BasicValue Tuple(List items) {
    BasicValue tuple;
    tuple.data_ = TupleItems{std::move(items)};
    return tuple;
  }
  template <typename T>
  BasicValue(T*) = delete;  // a pointer would convert to bool

  ValueKind kind() const { return static_cast<ValueKind>(data_.index()); }
  bool is_none() const { return kind() == ValueKind::kNone; }

  // The content, or null when the value is of another kind. list() also reads tuples. The pointers
  // are valid until the value changes.
  const bool* boolean() const { return std::get_if<bool>(&data_); }
  const std::int64_t* integer() const { return std::get_if<std::int64_t>(&data_); }
  const double* floating() const { return std::get_if<double>(&data_); }
  const std::string* string() const { return std::get_if<std::string>(&data_); }
  const Tensor* tensor() const { return std::get_if<Tensor>(&data_); }
  const Dict* dict() const { return std::get_if<Dict>(&data_); }
  const List* list() const {
    if (const auto* tuple = std::get_if<TupleItems>(&data_)) return &tuple->items;
    return std::get_if<List>(&data_);
  }

  // The entry for `key`, or null when there is none or this is not a dict.
  const BasicValue* Find(const ValueKey& key) const {
    return dict() != nullptr ? dict()->Find(key) : nullptr;
  }

  // The dict entry for `key`; GetFloat() also accepts an int. kInvalidArgument when it is missing
  // or of another kind: "'epoch' is missing", "'epoch' is of type str, not int".
  absl::StatusOr<std::int64_t> GetInt(const std::string& key) const {
    return Get(key, ValueKind::kInt, &BasicValue::integer);
  }
  absl::StatusOr<double> GetFloat(const std::string& key) const {
    const BasicValue* entry = Find(key);
    if (entry != nullptr && entry->integer()) return static_cast<double>(*entry->integer());
    return Get(key, ValueKind::kFloat, &BasicValue::floating);
  }
  absl::StatusOr<std::string> GetString(const std::string& key) const {
    return Get(key, ValueKind::kString, &BasicValue::string);
  }

 private:
  struct TupleItems {
    List items;
  };

  template <typename T>
  absl::StatusOr<T> Get(const std::string& key, ValueKind wanted,
                        const T* (BasicValue::*as)() const) const {
    const BasicValue* entry = Find(key);
    if (entry == nullptr) return WrongEntry(key, std::nullopt, wanted);
    const T* held = (entry->*as)();
    if (held == nullptr) return WrongEntry(key, entry->kind(), wanted);
    return *held;
  }

  std::variant<std::monostate, bool, std::int64_t, double, std::string, Tensor, List, TupleItems,
               Dict>
      data_;
};

// The element types of checkpoints, and their names in files.

// The types of LibTorch 1.13 that have a name in both torch.save and safetensors files.
enum class Dtype {
  kFloat64,
  kFloat32,
  kFloat16,
  kBfloat16,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUint8,
  kBool,
};

// The size of an element in bytes.
std::size_t ElementSize(Dtype dtype);

// Whether each of `bytes` is a bool: 0 or 1.
bool AreBools(std::string_view bytes);

// Python's name without "torch.", such as "float32".
const char* PythonName(Dtype dtype);

// The storage class that torch.save writes for it, such as "FloatStorage".
const char* StorageClass(Dtype dtype);
std::optional<Dtype> FromStorageClass(const std::string& name);

// Its name in the header of a safetensors file, such as "F32".
const char* SafetensorsName(Dtype dtype);
std::optional<Dtype> FromSafetensorsName(const std::string& name);

// The contents of a checkpoint's pickle: Python values whose tensors are views into storages.

// A view into a storage: element (i, j, ...) is storage[offset + i * strides[0] + j * strides[1] +
// ...].
struct StoredTensor {
  std::size_t storage = 0;  // an index into the file's storages
  std::int64_t offset = 0;  // in elements, as are the next two
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
};

using StoredValue = BasicValue<StoredTensor>;
using StoredDict = BasicDict<StoredTensor>;

// An array of elements in the file, into which tensors are views.
struct Storage {
  std::string key;  // stored in the record data/<key>
  Dtype dtype = Dtype::kFloat32;
  std::int64_t elements = 0;
};

// Walks a tree of Python values.

// The place of a value in a tree: the keys of dicts and the numbers in lists that lead to it.
using TreePlace = std::vector<ValueKey>;

// "['model']['weight'][0]", for messages.
std::string ToString(const TreePlace& place);

// Returns `tree` with each tensor replaced by what `convert` makes of it: an
// absl::StatusOr<BasicValue<To>>, given the tensor and its place, a TreePlace, behind `place`.
// Tensors come in the order of the tree. Its first error ends the walk, as does a tree deeper than
// 100, kInvalidArgument: the reader allows no deeper one.
template <typename To, typename From, typename Convert>
absl::StatusOr<BasicValue<To>> MapTensors(const BasicValue<From>& tree, Convert& convert,
                                          const TreePlace& place = {}) {
  if (place.size() >= 100) {
    return absl::InvalidArgumentError("lists or dicts are within one another too deeply");
  }
  switch (tree.kind()) {
    case ValueKind::kNone:
      return BasicValue<To>();
    case ValueKind::kBool:
      return BasicValue<To>(*tree.boolean());
    case ValueKind::kInt:
      return BasicValue<To>(*tree.integer());
    case ValueKind::kFloat:
      return BasicValue<To>(*tree.floating());
    case ValueKind::kString:
      return BasicValue<To>(*tree.string());
    case ValueKind::kTensor:
      return convert(*tree.tensor(), place);
    case ValueKind::kList:
    case ValueKind::kTuple: {
      typename BasicValue<To>::List items;
      TreePlace inside = place;
      inside.emplace_back();
      for (const BasicValue<From>& item : *tree.list()) {
        inside.back() = static_cast<std::int64_t>(items.size());
        auto mapped = MapTensors<To>(item, convert, inside);
        if (!mapped.ok()) return mapped.status();
        items.push_back(std::move(*mapped));
      }
      if (tree.kind() == ValueKind::kTuple) return BasicValue<To>::Tuple(std::move(items));
      return BasicValue<To>(std::move(items));
    }
    case ValueKind::kDict: {
      BasicDict<To> dict(tree.dict()->ordered());
      TreePlace inside = place;
      inside.emplace_back();
      for (const auto& [key, item] : *tree.dict()) {
        inside.back() = key;
        auto mapped = MapTensors<To>(item, convert, inside);
        if (!mapped.ok()) return mapped.status();
        dict.Append(key, std::move(*mapped));
      }
      return BasicValue<To>(std::move(dict));
    }
  }
  std::abort();
}

// A checkpoint without its tensors, as JSON.

// Stands for a tensor that is elsewhere.
struct TensorName {
  std::string name;

  bool operator==(const TensorName&) const = default;
};

using NamedTree = BasicValue<TensorName>;

// The tree as JSON from which exactly the same one comes back: the order of a dict, a tuple or a
// list, an int or a float, each digit. None, bools, numbers, texts and lists are JSON's own; all
// else is an object with one member, which says what it is:
//   {"dict": [[key, value], ...]}          the keys are texts or integers
//   {"ordered_dict": [[key, value], ...]}  a collections.OrderedDict
//   {"tuple": [value, ...]}
//   {"tensor": "conv1.weight"}
//   {"float": "nan"}                       "nan", "inf" or "-inf", for which JSON has no numbers
nlohmann::json TreeJson(const NamedTree& tree);

// The inverse. kInvalidArgument, with one clause, for anything else and for a tree deeper than 100.
absl::StatusOr<NamedTree> ReadTreeJson(const nlohmann::json& json);

}  // namespace muster::trainer
