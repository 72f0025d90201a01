#include "trainer/io/pickle/basic_value.h"

#include <cstdlib>

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

absl::Status WrongEntry(const std::string& key, std::optional<ValueKind> found, ValueKind wanted) {
  if (!found) return absl::InvalidArgumentError(absl::StrCat("'", key, "' is missing"));
  return absl::InvalidArgumentError(
      absl::StrCat("'", key, "' is of type ", PythonName(*found), ", not ", PythonName(wanted)));
}

}  // namespace muster::trainer
