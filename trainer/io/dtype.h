// The element types that checkpoints hold, by the names that files give them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace muster::trainer {

// Those of LibTorch 1.13 that both torch.save and safetensors have a name for.
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

// Bytes of an element.
std::size_t ElementSize(Dtype dtype);

// As Python prints it, "torch.float32" without the "torch.".
const char* PythonName(Dtype dtype);

// The class that torch.save names for a storage of it, such as "FloatStorage".
const char* StorageClass(Dtype dtype);
std::optional<Dtype> FromStorageClass(const std::string& name);

// The name in the header of a safetensors file, such as "F32".
const char* SafetensorsName(Dtype dtype);
std::optional<Dtype> FromSafetensorsName(const std::string& name);

}  // namespace muster::trainer
