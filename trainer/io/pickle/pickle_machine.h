// The objects that a pickle builds while it is read.
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

#include "trainer/io/pickle/pickle_reader.h"
#include "trainer/io/pickle/stored_value.h"

namespace muster::trainer {

// The classes and functions that a pickle may name.
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

// An object; others refer to it by its number, so that it may be shared and changed like Python's.
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
  std::size_t index = 0;               // kTensor: of tensors(); kStorage: of storages()
};

// "its pickle is damaged: it is cut short". kInvalidArgument.
absl::Status DamagedPickle(const char* what);

// Holds the objects, and does what the functions do that a pickle calls. Knows nothing of opcodes.
// Errors are one clause, kInvalidArgument.
class PickleMachine {
 public:
  using Id = std::uint32_t;

  explicit PickleMachine(const PickleLimits& limits) : limits_(limits) {}

  absl::StatusOr<Id> Make(PickleObject object);
  PickleObject& operator[](Id id) { return objects_[id]; }

  // The global `module`.`name`, if it may be named.
  absl::StatusOr<Id> Global(const std::string& module, const std::string& name);
  // What `callable` gives when it is called with the tuple `arguments`.
  absl::StatusOr<Id> Call(Id callable, Id arguments);
  // The storage that the persistent id `id` stands for (torch/serialization.py, persistent_load).
  absl::StatusOr<Id> PersistentLoad(Id id);
  // The state of `object` is set to an object of the caller's; refused but for OrderedDicts, which
  // ignore it.
  absl::Status Build(Id object);

  // The tree below `root`, and the storages. The machine is then empty.
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
  std::size_t expanded_strings_ = 0;  // their bytes
};

}  // namespace muster::trainer
