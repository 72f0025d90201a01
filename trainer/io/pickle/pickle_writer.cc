#include "trainer/io/pickle/pickle_writer.h"

#include <bit>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

namespace muster::trainer {
namespace {

constexpr int kDeepest = 100;  // as the reader allows

// Appends the opcodes of Python's pickletools.py.
class Writer {
 public:
  explicit Writer(const std::vector<Storage>& storages) : storages_(storages) {}

  absl::StatusOr<std::string> Write(const StoredValue& value) && {
    bytes_ = "\x80\x02";
    if (absl::Status status = Tree(value, 1); !status.ok()) return status;
    return std::move(bytes_) + '.';
  }

 private:
  absl::Status Tree(const StoredValue& value, int depth) {
    if (depth > kDeepest) {
      return absl::InvalidArgumentError("lists or dicts are within one another too deeply");
    }
    switch (value.kind()) {
      case ValueKind::kNone:
        bytes_ += 'N';
        return absl::OkStatus();
      case ValueKind::kBool:
        Bool(*value.boolean());
        return absl::OkStatus();
      case ValueKind::kInt:
        Integer(*value.integer());
        return absl::OkStatus();
      case ValueKind::kFloat:
        Float(*value.floating());
        return absl::OkStatus();
      case ValueKind::kString:
        return String(*value.string());
      case ValueKind::kTensor:
        Tensor(*value.tensor());
        return absl::OkStatus();
      case ValueKind::kTuple:
        bytes_ += '(';
        return Items(*value.list(), 't', depth);
      case ValueKind::kList:
        bytes_ += "](";
        return Items(*value.list(), 'e', depth);
      case ValueKind::kDict:
        return Dict(*value.dict(), depth);
    }
    std::abort();
  }

  // What follows a mark, and the opcode that takes it.
  absl::Status Items(const StoredValue::List& items, char code, int depth) {
    for (const StoredValue& item : items) {
      if (absl::Status status = Tree(item, depth + 1); !status.ok()) return status;
    }
    bytes_ += code;
    return absl::OkStatus();
  }

  absl::Status Dict(const StoredDict& dict, int depth) {
    if (dict.ordered()) {
      OrderedDict();
    } else {
      bytes_ += '}';
    }
    bytes_ += '(';
    for (const auto& [key, value] : dict) {
      if (const auto* number = std::get_if<std::int64_t>(&key)) {
        Integer(*number);
      } else if (absl::Status status = String(std::get<std::string>(key)); !status.ok()) {
        return status;
      }
      if (absl::Status status = Tree(value, depth + 1); !status.ok()) return status;
    }
    bytes_ += 'u';
    return absl::OkStatus();
  }

  // A call of torch._utils._rebuild_tensor_v2.
  void Tensor(const StoredTensor& tensor) {
    const Storage& storage = storages_[tensor.storage];
    Global("torch._utils", "_rebuild_tensor_v2");
    bytes_ += "((";
    ShortString("storage");
    Global("torch", StorageClass(storage.dtype));
    ShortString(storage.key);
    ShortString("cpu");
    Integer(storage.elements);
    bytes_ += "tQ";  // the persistent id
    Integer(tensor.offset);
    Integers(tensor.sizes);
    Integers(tensor.strides);
    Bool(false);    // requires_grad
    OrderedDict();  // backward hooks
    bytes_ += "tR";
  }

  void OrderedDict() {
    Global("collections", "OrderedDict");
    bytes_ += ")R";
  }

  void Global(const char* module, const char* name) {
    bytes_.append("c").append(module).append("\n").append(name).append("\n");
  }

  void Bool(bool value) { bytes_ += value ? '\x88' : '\x89'; }

  void Integers(const std::vector<std::int64_t>& values) {
    bytes_ += '(';
    for (const std::int64_t value : values) Integer(value);
    bytes_ += 't';
  }

  void Integer(std::int64_t value) {
    if (value >= 0 && value <= 0xff) {
      bytes_ += 'K';
      LittleEndian(static_cast<std::uint64_t>(value), 1);
    } else if (value == static_cast<std::int32_t>(value)) {
      bytes_ += 'J';
      LittleEndian(static_cast<std::uint64_t>(value), 4);
    } else {
      bytes_ += "\x8a\x08";  // LONG1 of 8 bytes
      LittleEndian(static_cast<std::uint64_t>(value), 8);
    }
  }

  void Float(double value) {  // the only number that is big-endian
    bytes_ += 'G';
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 56; shift >= 0; shift -= 8) bytes_ += static_cast<char>(bits >> shift);
  }

  absl::Status String(const std::string& text) {
    if (text.size() > std::numeric_limits<std::uint32_t>::max()) {
      return absl::InvalidArgumentError("a string is longer than 4 GiB");
    }
    ShortString(text);
    return absl::OkStatus();
  }

  void ShortString(const std::string& text) {
    bytes_ += 'X';
    LittleEndian(text.size(), 4);
    bytes_ += text;
  }

  void LittleEndian(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }

  const std::vector<Storage>& storages_;
  std::string bytes_;
};

}  // namespace

absl::StatusOr<std::string> WritePickle(const StoredValue& value,
                                        const std::vector<Storage>& storages) {
  return Writer(storages).Write(value);
}

}  // namespace muster::trainer
