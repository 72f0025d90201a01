#include "trainer/io/formats/pickle_reader.h"

#include <bit>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"

#include "trainer/io/formats/pickle_machine.h"

namespace muster::trainer {
namespace {

using Id = PickleMachine::Id;
using Kind = PickleObject::Kind;

// Runs the opcodes of Python's pickletools.py that protocol 2 takes. Numbers are little-endian.
class Interpreter {
 public:
  Interpreter(std::string_view pickle, const PickleLimits& limits)
      : rest_(pickle), machine_(limits) {}

  absl::StatusOr<PickledContents> Run() {
    if (rest_.size() < 2 || rest_[0] != '\x80') return DamagedPickle("it does not begin as one");
    if (rest_[1] != 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("it is of pickle protocol ", static_cast<unsigned char>(rest_[1]),
                       "; save it with torch.save's own, which is 2"));
    }
    rest_.remove_prefix(2);
    for (;;) {
      std::string_view code;
      if (!Take(1, code)) return DamagedPickle("it is cut short");
      if (code[0] == '.') break;
      if (absl::Status status = Execute(static_cast<unsigned char>(code[0])); !status.ok()) {
        return status;
      }
    }
    Id root = 0;
    if (stack_.size() != 1 || !marks_.empty() || !Pop(root))
      return DamagedPickle("its end comes early");
    return std::move(machine_).Finish(root);
  }

 private:
  absl::Status Execute(unsigned char code) {
    switch (code) {
      case '(':  // MARK
        marks_.push_back(stack_.size());
        return absl::OkStatus();
      case 'N':
        return Push({});
      case 0x88:
        return Push({.scalar = true});
      case 0x89:
        return Push({.scalar = false});
      case 'K':  // BININT1
        return Integer(1, /*is_signed=*/false);
      case 'M':  // BININT2
        return Integer(2, /*is_signed=*/false);
      case 'J':  // BININT
        return Integer(4, /*is_signed=*/true);
      case 0x8a:  // LONG1
        return Long();
      case 'G':
        return Float();
      case 'X':  // BINUNICODE
        return String();
      case ']':
        return Push({.kind = Kind::kList});
      case '}':
        return Push({.kind = Kind::kDict});
      case ')':
        return Push({.kind = Kind::kTuple});
      case 0x85:  // TUPLE1, TUPLE2, TUPLE3
      case 0x86:
      case 0x87:
        return TupleOf(code - 0x84);
      case 't':
        return TupleFromMark();
      case 'a':  // APPEND
        return AddTo(Kind::kList, 1);
      case 'e':  // APPENDS
        return AddFromMark(Kind::kList);
      case 's':  // SETITEM
        return AddTo(Kind::kDict, 2);
      case 'u':  // SETITEMS
        return AddFromMark(Kind::kDict);
      case 'q':  // BINPUT
        return Put(1);
      case 'r':  // LONG_BINPUT
        return Put(4);
      case 'h':  // BINGET
        return Get(1);
      case 'j':  // LONG_BINGET
        return Get(4);
      case 'c':
        return Global();
      case 'R':
        return Reduce();
      case 'Q':
        return PersistentId();
      case 'b':
        return Build();
      default:
        return absl::InvalidArgumentError(
            absl::StrCat("its pickle has opcode 0x", absl::Hex(code, absl::kZeroPad2),
                         ", which no checkpoint of plain values takes"));
    }
  }

  // The next `count` bytes; false when there are fewer.
  bool Take(std::size_t count, std::string_view& bytes) {
    if (rest_.size() < count) return false;
    bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return true;
  }

  bool TakeNumber(std::size_t size, std::uint64_t& value) {
    std::string_view bytes;
    if (!Take(size, bytes)) return false;
    value = 0;
    for (std::size_t i = size; i-- > 0;) {
      value = value << 8 | static_cast<unsigned char>(bytes[i]);
    }
    return true;
  }

  // The text before the next newline.
  bool TakeLine(std::string& line) {
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos || end > 1000) return false;
    line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return true;
  }

  absl::Status Push(PickleObject object) { return PushMade(machine_.Make(std::move(object))); }
  absl::Status PushMade(absl::StatusOr<Id> id) {
    if (!id.ok()) return id.status();
    stack_.push_back(*id);
    return absl::OkStatus();
  }

  // How many objects may be popped: those above the last mark.
  std::size_t Available() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }

  bool Pop(Id& id) {
    if (Available() == 0) return false;
    id = stack_.back();
    stack_.pop_back();
    return true;
  }

  bool PopMany(std::size_t count, std::vector<Id>& ids) {
    if (Available() < count) return false;
    ids.assign(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return true;
  }

  bool PopMark(std::vector<Id>& ids) {
    if (marks_.empty()) return false;
    PopMany(Available(), ids);
    marks_.pop_back();
    return true;
  }

  absl::Status Integer(std::size_t size, bool is_signed) {
    std::uint64_t value = 0;
    if (!TakeNumber(size, value)) return DamagedPickle("a number is cut short");
    return Push({.scalar = is_signed ? std::int64_t{static_cast<std::int32_t>(value)}
                                     : static_cast<std::int64_t>(value)});
  }

  absl::Status Long() {
    std::uint64_t size = 0;
    if (!TakeNumber(1, size)) return DamagedPickle("a number is cut short");
    if (size > 8) return absl::InvalidArgumentError("it holds an int of more than 64 bits");
    std::uint64_t value = 0;
    if (!TakeNumber(size, value)) return DamagedPickle("a number is cut short");
    if (size == 0) return Push({.scalar = std::int64_t{0}});
    const unsigned unused = 64 - 8 * static_cast<unsigned>(size);  // to extend the sign
    return Push({.scalar = static_cast<std::int64_t>(value << unused) >> unused});
  }

  absl::Status Float() {  // the only number that is big-endian
    std::string_view bytes;
    if (!Take(8, bytes)) return DamagedPickle("a number is cut short");
    std::uint64_t bits = 0;
    for (const char byte : bytes) bits = bits << 8 | static_cast<unsigned char>(byte);
    return Push({.scalar = std::bit_cast<double>(bits)});
  }

  absl::Status String() {
    std::uint64_t size = 0;
    std::string_view bytes;
    if (!TakeNumber(4, size) || !Take(size, bytes)) return DamagedPickle("a string is cut short");
    return Push({.kind = Kind::kString, .string = std::string(bytes)});
  }

  absl::Status TupleOf(std::size_t count) {
    PickleObject tuple = {.kind = Kind::kTuple};
    if (!PopMany(count, tuple.objects)) return DamagedPickle("a tuple of nothing");
    return Push(std::move(tuple));
  }

  absl::Status TupleFromMark() {
    PickleObject tuple = {.kind = Kind::kTuple};
    if (!PopMark(tuple.objects)) return DamagedPickle("a mark is missing");
    return Push(std::move(tuple));
  }

  absl::Status AddTo(Kind kind, std::size_t count) {
    std::vector<Id> ids;
    if (!PopMany(count, ids)) return DamagedPickle("nothing to add");
    return Add(kind, ids);
  }

  absl::Status AddFromMark(Kind kind) {
    std::vector<Id> ids;
    if (!PopMark(ids)) return DamagedPickle("a mark is missing");
    return Add(kind, ids);
  }

  // Adds to the list or dict that is on top.
  absl::Status Add(Kind kind, const std::vector<Id>& ids) {
    if (Available() == 0 || machine_[stack_.back()].kind != kind) {
      return DamagedPickle("it adds to what is no list or dict");
    }
    if (kind == Kind::kDict && ids.size() % 2 != 0) return DamagedPickle("a key without a value");
    std::vector<Id>& objects = machine_[stack_.back()].objects;
    objects.insert(objects.end(), ids.begin(), ids.end());
    return absl::OkStatus();
  }

  absl::Status Put(std::size_t size) {
    std::uint64_t key = 0;
    if (!TakeNumber(size, key)) return DamagedPickle("it is cut short");
    if (Available() == 0) return DamagedPickle("nothing to remember");
    memo_[key] = stack_.back();
    return absl::OkStatus();
  }

  absl::Status Get(std::size_t size) {
    std::uint64_t key = 0;
    if (!TakeNumber(size, key)) return DamagedPickle("it is cut short");
    const auto found = memo_.find(key);
    if (found == memo_.end()) return DamagedPickle("it refers to what is not there");
    return PushMade(found->second);
  }

  absl::Status Global() {
    std::string module;
    std::string name;
    if (!TakeLine(module) || !TakeLine(name)) return DamagedPickle("a name is cut short");
    // Remembered, because a checkpoint without a memo names the same few for each tensor.
    const std::string key = module + '\n' + name;
    const auto found = globals_.find(key);
    if (found != globals_.end()) return PushMade(found->second);
    absl::StatusOr<Id> global = machine_.Global(module, name);
    if (global.ok()) globals_.emplace(key, *global);
    return PushMade(std::move(global));
  }

  absl::Status Reduce() {
    std::vector<Id> ids;
    if (!PopMany(2, ids)) return DamagedPickle("a call of nothing");
    return PushMade(machine_.Call(ids[0], ids[1]));
  }

  absl::Status PersistentId() {
    Id id = 0;
    if (!Pop(id)) return DamagedPickle("a storage of nothing");
    return PushMade(machine_.PersistentLoad(id));
  }

  absl::Status Build() {
    std::vector<Id> ids;
    if (!PopMany(1, ids) || Available() == 0) return DamagedPickle("it sets attributes of nothing");
    return machine_.Build(stack_.back());
  }

  std::string_view rest_;
  PickleMachine machine_;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;  // the height of the stack at each mark
  std::unordered_map<std::uint64_t, Id> memo_;
  std::unordered_map<std::string, Id> globals_;
};

}  // namespace

absl::StatusOr<PickledContents> ReadPickle(std::string_view pickle, const PickleLimits& limits) {
  return Interpreter(pickle, limits).Run();
}

}  // namespace muster::trainer
