// The objects that are built while a pickle is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/formats/pickle_reader.h"
#include "trainer/io/formats/value_tree.h"

namespace muster::trainer {

// The classes and functions that a pickle may refer to.
enum class PickleGlobal {
  kOrderedDict,
  kCounter,
  kSet,
  kRebuildTensor,
  kRebuildParameter,
  kSize,
  kDevice,
  kStorageClass,
};

// An object. Others refer to it by its index, so it can be shared and modified as in Python.
struct PickleObject {
  enum class Kind { kScalar, kString, kList, kTuple, kDict, kTensor, kStorage, kGlobal };

  using Scalar = std::variant<std::monostate, bool, std::int64_t, double>;  // monostate: None

  const std::int64_t* integer() const { return std::get_if<std::int64_t>(&scalar); }
  bool is_none() const { return kind == Kind::kScalar && scalar.index() == 0; }

  Kind kind = Kind::kScalar;
  bool ordered = false;                // kDict: an OrderedDict
  PickleGlobal global{};               // kGlobal
  Scalar scalar;                       // kScalar
  std::string string;                  // kString; kGlobal: the name
  std::vector<std::uint32_t> objects;  // kList, kTuple; kDict: key, value, key, value, ...
  std::size_t index = 0;               // kTensor: in tensors_; kStorage: in storages_
};

// "its pickle is damaged: it is cut short". kInvalidArgument.
absl::Status DamagedPickle(const char* what);

// Holds the objects and implements the functions that a pickle calls. Does not know opcodes. Errors
// are kInvalidArgument with one clause.
class PickleMachine {
 public:
  using Id = std::uint32_t;

  explicit PickleMachine(const PickleLimits& limits) : limits_(limits) {}

  absl::StatusOr<Id> Make(PickleObject object);
  PickleObject& operator[](Id id) { return objects_[id]; }

  // The global `module`.`name`. An error if it is not an allowed one.
  absl::StatusOr<Id> Global(const std::string& module, const std::string& name);
  // The result of calling `callable` with the tuple `arguments`.
  absl::StatusOr<Id> Call(Id callable, Id arguments);
  // The storage with the persistent id `id` (torch/serialization.py, persistent_load).
  absl::StatusOr<Id> PersistentLoad(Id id);
  // Handles the opcode that sets an object's state. Accepts only an OrderedDict, and ignores its
  // state; an error for any other object.
  absl::Status Build(Id object);

  // Returns the tree below `root`, and the storages. Consumes the machine.
  absl::StatusOr<PickledContents> Finish(Id root) &&;

 private:
  absl::StatusOr<Id> RebuildTensor(const std::vector<Id>& arguments);
  absl::StatusOr<Id> DeviceName(const std::vector<Id>& arguments);
  bool Integers(Id id, std::vector<std::int64_t>& out) const;
  absl::StatusOr<StoredValue> Expand(Id id, std::size_t depth);
  absl::StatusOr<StoredValue> ExpandDict(const PickleObject& dict, std::size_t depth);

  const PickleLimits limits_;
  std::vector<PickleObject> objects_;
  std::vector<StoredTensor> tensors_;
  std::vector<Storage> storages_;
  std::unordered_map<std::string, std::size_t> storage_by_key_;
  std::size_t expanded_ = 0;          // values in the tree so far
  std::size_t expanded_strings_ = 0;  // bytes of strings in the tree so far
};

}  // namespace muster::trainer
