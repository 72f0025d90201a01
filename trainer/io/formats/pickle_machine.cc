#include "trainer/io/formats/pickle_machine.h"

#include <limits>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

using Kind = PickleObject::Kind;

constexpr std::size_t kMostDimensions = 64;

absl::Status Refused(const std::string& name) {
  return absl::InvalidArgumentError(absl::StrCat("it holds ", name,
                                                 ", which is not read here; save a state_dict(), "
                                                 "and plain numbers, strings, lists and dicts"));
}

absl::Status TooLarge(const char* what) {
  return absl::InvalidArgumentError(absl::StrCat("its pickle has ", what));
}

// Those that mean the same to us, by "module.name"; __builtin__ is what protocol 2 calls builtins.
const std::map<std::string, PickleGlobal>& Globals() {
  static const auto* const globals = new std::map<std::string, PickleGlobal>{
      {"collections.OrderedDict", PickleGlobal::kOrderedDict},
      {"collections.Counter", PickleGlobal::kCounter},  // MultiStepLR's milestones
      {"__builtin__.set", PickleGlobal::kSet},
      {"__builtin__.frozenset", PickleGlobal::kSet},
      {"torch._utils._rebuild_tensor_v2", PickleGlobal::kRebuildTensor},
      {"torch._utils._rebuild_parameter", PickleGlobal::kRebuildParameter},
      {"torch._utils._rebuild_parameter_with_state", PickleGlobal::kRebuildParameter},
      {"torch.Size", PickleGlobal::kSize},
      {"torch.device", PickleGlobal::kDevice},
  };
  return *globals;
}

// The dtypes that Python may name; the tensors among them are those of Dtype.
bool IsDtypeName(const std::string& name) {
  for (const char* known : {"float64", "float32", "float16", "bfloat16", "int64", "int32", "int16",
                            "int8", "uint8", "bool", "complex64", "complex128"}) {
    if (name == known) return true;
  }
  return false;
}

// The dtype of the elements of storage class `name`, as in "torch.FloatStorage". An untyped one
// has bytes.
std::optional<Dtype> StorageDtype(const std::string& name) {
  if (name == "torch.UntypedStorage" || name == "torch.storage.UntypedStorage") {
    return Dtype::kUint8;
  }
  constexpr std::string_view kModule = "torch.";
  if (name.rfind(kModule, 0) != 0) return std::nullopt;
  return FromStorageClass(name.substr(kModule.size()));
}

StoredValue FromScalar(std::monostate) {
  return {};
}
template <typename T>
StoredValue FromScalar(T scalar) {
  return StoredValue(scalar);
}

// Why `tensor` cannot be a view into `storage`; null when it can.
const char* WhyOutOfBounds(const StoredTensor& tensor, const Storage& storage) {
  if (tensor.sizes.size() != tensor.strides.size()) {
    return "a tensor has a wrong number of strides";
  }
  std::int64_t elements = 1;
  std::int64_t last = tensor.offset;
  bool overflow = false;
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    if (tensor.sizes[i] < 0 || tensor.strides[i] < 0) return "a tensor has a negative size";
    overflow |= __builtin_mul_overflow(elements, tensor.sizes[i], &elements);
  }
  if (tensor.offset < 0 || tensor.offset > storage.elements) return "a tensor is out of bounds";
  if (overflow) return "a tensor is too large";
  if (elements == 0) return nullptr;
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    std::int64_t reach = 0;
    overflow |= __builtin_mul_overflow(tensor.sizes[i] - 1, tensor.strides[i], &reach);
    overflow |= __builtin_add_overflow(last, reach, &last);
  }
  if (overflow || last >= storage.elements) return "a tensor is out of bounds";
  // Such a view is legal in Python, but whoever makes it dense would fill the memory by a number.
  if (elements > storage.elements) return "a tensor has more elements than its storage (expand())";
  return nullptr;
}

}  // namespace

absl::Status DamagedPickle(const char* what) {
  return absl::InvalidArgumentError(absl::StrCat("its pickle is damaged: ", what));
}

absl::StatusOr<PickleMachine::Id> PickleMachine::Make(PickleObject object) {
  if (objects_.size() >= limits_.objects) return TooLarge("too many objects");
  objects_.push_back(std::move(object));
  return static_cast<Id>(objects_.size() - 1);
}

absl::StatusOr<PickleMachine::Id> PickleMachine::Global(const std::string& module,
                                                        const std::string& name) {
  const std::string full = absl::StrCat(module, ".", name);
  if (module == "torch" && IsDtypeName(name)) {
    return Make({.kind = Kind::kString, .string = full});
  }
  PickleObject global = {.kind = Kind::kGlobal, .string = full};
  if (const auto found = Globals().find(full); found != Globals().end()) {
    global.global = found->second;
  } else if (StorageDtype(full)) {
    global.global = PickleGlobal::kStorageClass;
  } else {
    return Refused(full);
  }
  return Make(std::move(global));
}

absl::StatusOr<PickleMachine::Id> PickleMachine::Call(Id callable, Id arguments) {
  if (objects_[callable].kind != Kind::kGlobal || objects_[arguments].kind != Kind::kTuple) {
    return DamagedPickle("a call of something that is not a function");
  }
  // Copied, because Make() moves the objects; a tuple that is shared could be copied many times.
  if (objects_[arguments].objects.size() > 7)
    return DamagedPickle("a call with too many arguments");
  const std::vector<Id> given = objects_[arguments].objects;
  switch (objects_[callable].global) {
    case PickleGlobal::kOrderedDict:
      if (given.empty()) return Make({.kind = Kind::kDict, .ordered = true});
      break;
    case PickleGlobal::kCounter:
      if (given.empty()) return Make({.kind = Kind::kDict});
      if (given.size() == 1 && objects_[given[0]].kind == Kind::kDict) return given[0];
      break;
    case PickleGlobal::kSet:
      if (given.empty()) return Make({.kind = Kind::kList});
      if (given.size() == 1 && objects_[given[0]].kind == Kind::kList) return given[0];
      break;
    case PickleGlobal::kRebuildTensor:
      return RebuildTensor(given);
    case PickleGlobal::kRebuildParameter:
      if (given.size() >= 3 && objects_[given[0]].kind == Kind::kTensor) return given[0];
      break;
    case PickleGlobal::kSize:
      if (given.size() == 1 && objects_[given[0]].kind == Kind::kTuple) return given[0];
      break;
    case PickleGlobal::kDevice:
      return DeviceName(given);
    case PickleGlobal::kStorageClass:
      break;
  }
  return DamagedPickle("a call with wrong arguments");
}

absl::StatusOr<PickleMachine::Id> PickleMachine::PersistentLoad(Id id) {
  // ("storage", class, key, location, elements)
  const PickleObject& tuple = objects_[id];
  if (tuple.kind != Kind::kTuple || tuple.objects.size() != 5)
    return DamagedPickle("a wrong storage");
  const PickleObject& type = objects_[tuple.objects[1]];
  const PickleObject& key = objects_[tuple.objects[2]];
  const std::int64_t* elements = objects_[tuple.objects[4]].integer();
  if (objects_[tuple.objects[0]].string != "storage" || type.kind != Kind::kGlobal ||
      type.global != PickleGlobal::kStorageClass || key.kind != Kind::kString ||
      elements == nullptr || *elements < 0) {
    return DamagedPickle("a wrong storage");
  }
  const Storage storage = {key.string, *StorageDtype(type.string), *elements};
  const auto [place, is_new] = storage_by_key_.emplace(storage.key, storages_.size());
  if (is_new) {
    storages_.push_back(storage);
  } else if (const Storage& known = storages_[place->second];
             known.dtype != storage.dtype || known.elements != storage.elements) {
    return DamagedPickle("a storage has two types");
  }
  return Make({.kind = Kind::kStorage, .index = place->second});
}

absl::Status PickleMachine::Build(Id object) {
  if (objects_[object].kind == Kind::kDict && objects_[object].ordered) return absl::OkStatus();
  return DamagedPickle("it sets attributes");
}

absl::StatusOr<PickleMachine::Id> PickleMachine::RebuildTensor(const std::vector<Id>& arguments) {
  // (storage, offset, sizes, strides, requires_grad, backward hooks[, metadata])
  if (arguments.size() < 6 || arguments.size() > 7 ||
      objects_[arguments[0]].kind != Kind::kStorage) {
    return DamagedPickle("a tensor without a storage");
  }
  if (arguments.size() == 7) {  // such as "conj", which turns what the elements mean
    const PickleObject& metadata = objects_[arguments[6]];
    if (metadata.kind != Kind::kDict ? !metadata.is_none() : !metadata.objects.empty()) {
      return Refused("a tensor with a property of its own (conjugated or negated)");
    }
  }
  StoredTensor tensor = {.storage = objects_[arguments[0]].index};
  const std::int64_t* offset = objects_[arguments[1]].integer();
  if (offset == nullptr || !Integers(arguments[2], tensor.sizes) ||
      !Integers(arguments[3], tensor.strides)) {
    return DamagedPickle("a tensor without sizes");
  }
  tensor.offset = *offset;
  if (const char* why = WhyOutOfBounds(tensor, storages_[tensor.storage]))
    return DamagedPickle(why);
  tensors_.push_back(std::move(tensor));
  return Make({.kind = Kind::kTensor, .index = tensors_.size() - 1});
}

absl::StatusOr<PickleMachine::Id> PickleMachine::DeviceName(const std::vector<Id>& arguments) {
  if (arguments.empty() || arguments.size() > 2 || objects_[arguments[0]].kind != Kind::kString) {
    return DamagedPickle("a device without a name");
  }
  std::string name = objects_[arguments[0]].string;
  if (arguments.size() == 2) {
    const std::int64_t* index = objects_[arguments[1]].integer();
    if (index == nullptr) return DamagedPickle("a device without a number");
    absl::StrAppend(&name, ":", *index);
  }
  return Make({.kind = Kind::kString, .string = std::move(name)});
}

bool PickleMachine::Integers(Id id, std::vector<std::int64_t>& out) const {
  const PickleObject& tuple = objects_[id];
  if (tuple.kind != Kind::kTuple && tuple.kind != Kind::kList) return false;
  if (tuple.objects.size() > kMostDimensions) return false;
  for (const Id item : tuple.objects) {
    const std::int64_t* value = objects_[item].integer();
    if (value == nullptr) return false;
    out.push_back(*value);
  }
  return true;
}

absl::StatusOr<PickledContents> PickleMachine::Finish(Id root) && {
  absl::StatusOr<StoredValue> value = Expand(root, 1);
  if (!value.ok()) return value.status();
  return PickledContents{std::move(*value), std::move(storages_)};
}

// Objects that occur several times are copied each time, so what comes out may be larger than the
// pickle, without bound if it holds itself: this is why there are limits here, too.
absl::StatusOr<StoredValue> PickleMachine::Expand(Id id, std::size_t depth) {
  if (depth > limits_.depth) return TooLarge("lists or dicts within one another too deeply");
  if (++expanded_ > limits_.objects) return TooLarge("too many values");
  const PickleObject& object = objects_[id];
  switch (object.kind) {
    case Kind::kScalar:
      return std::visit([](auto scalar) { return FromScalar(scalar); }, object.scalar);
    case Kind::kString:
      expanded_strings_ += object.string.size();
      if (expanded_strings_ > limits_.string_bytes) return TooLarge("too much text");
      return StoredValue(object.string);
    case Kind::kTensor:
      expanded_ += 2 * tensors_[object.index].sizes.size();
      return StoredValue(tensors_[object.index]);
    case Kind::kDict:
      return ExpandDict(object, depth);
    case Kind::kStorage:
      return Refused("a storage that is not a tensor's");
    case Kind::kGlobal:
      return Refused(object.string);
    case Kind::kList:
    case Kind::kTuple:
      break;
  }
  StoredValue::List items;
  for (const Id item : object.objects) {
    absl::StatusOr<StoredValue> value = Expand(item, depth + 1);
    if (!value.ok()) return value.status();
    items.push_back(std::move(*value));
  }
  return object.kind == Kind::kTuple ? StoredValue::Tuple(std::move(items))
                                     : StoredValue(std::move(items));
}

absl::StatusOr<StoredValue> PickleMachine::ExpandDict(const PickleObject& dict, std::size_t depth) {
  // A key that is set again keeps its first place and gets the last value.
  std::map<ValueKey, std::size_t> place_of;
  std::vector<std::pair<ValueKey, Id>> entries;
  for (std::size_t i = 0; i + 1 < dict.objects.size(); i += 2) {
    absl::StatusOr<StoredValue> key = Expand(dict.objects[i], depth + 1);
    if (!key.ok()) return key.status();
    ValueKey name;
    if (key->string() != nullptr) {
      name = *key->string();
    } else if (key->integer() != nullptr) {
      name = *key->integer();
    } else {
      return Refused("a dict with a key that is neither a str nor an int");
    }
    const auto [place, is_new] = place_of.emplace(name, entries.size());
    if (is_new) {
      entries.emplace_back(std::move(name), dict.objects[i + 1]);
    } else {
      entries[place->second].second = dict.objects[i + 1];
    }
  }
  StoredDict out(dict.ordered);
  for (auto& [name, id] : entries) {
    absl::StatusOr<StoredValue> value = Expand(id, depth + 1);
    if (!value.ok()) return value.status();
    out.Append(std::move(name), std::move(*value));
  }
  return StoredValue(std::move(out));
}

}  // namespace muster::trainer
