// The element types of checkpoints, and their names in files.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace muster::trainer {

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

// Python's name without "torch.", such as "float32".
const char* PythonName(Dtype dtype);

// The storage class that torch.save writes for it, such as "FloatStorage".
const char* StorageClass(Dtype dtype);
std::optional<Dtype> FromStorageClass(const std::string& name);

// Its name in the header of a safetensors file, such as "F32".
const char* SafetensorsName(Dtype dtype);
std::optional<Dtype> FromSafetensorsName(const std::string& name);

}  // namespace muster::trainer
