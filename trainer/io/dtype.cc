#include "trainer/io/dtype.h"

#include <array>

namespace muster::trainer {
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

}  // namespace muster::trainer
