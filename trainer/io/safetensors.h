// Files in the format of https://github.com/huggingface/safetensors.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/formats/files.h"
#include "trainer/io/formats/value_tree.h"
#include "trainer/runtime/named_tensor.h"

namespace muster::trainer {

// Converts between tensors and their bytes in a file.

// The type by which files name that of `tensor`. kInvalidArgument, with one clause that calls the
// tensor `name`, when there is none, or the tensor is none or has no elements in memory, such as a
// sparse one.
absl::StatusOr<Dtype> DtypeOf(const at::Tensor& tensor, const std::string& name);

// LibTorch's name for `dtype`.
at::ScalarType ScalarTypeOf(Dtype dtype);

// An uninitialized CPU tensor with `elements` elements of type `dtype`. Throws c10::Error when
// memory runs out.
at::Tensor EmptyTensor(Dtype dtype, std::int64_t elements);

// Identifies the elements that a tensor shows: two tensors with the same key show the same ones in
// the same order. Tensors without elements have no memory by which to tell them apart.
using ElementsKey =
    std::tuple<const void*, at::ScalarType, std::vector<std::int64_t>, std::vector<std::int64_t>>;
ElementsKey KeyOfElements(const at::Tensor& tensor);

// The elements of `tensor` in row-major order on the CPU: shares them if they already are, else
// copies them. Never requires a gradient.
at::Tensor DenseOnCpu(const at::Tensor& tensor);

// The memory of a tensor returned by one of the two functions above. Valid as long as the tensor.
std::string_view BytesOf(const at::Tensor& tensor);

struct SafetensorsContents {
  std::vector<NamedTensor> tensors;             // on the CPU, dense, in the order of the file
  std::map<std::string, std::string> metadata;  // free text from the file's writer
};

// Reads the file at `path`. kInvalidArgument when it cannot be opened, is damaged, or has a dtype
// that Dtype lacks; kUnavailable when reading fails or memory runs out. The format has no checksum.
absl::StatusOr<SafetensorsContents> ReadSafetensors(const std::string& path);

// Whether the file at `path` is one of these, by its name or by how it begins: --export takes any
// name.
bool IsSafetensors(const std::string& path);

// Writes `contents`, tensors with larger elements first so that each is aligned, and returns what
// tells whether the file is still that. The file appears
// complete or not at all. Copies at most one tensor at a time. kInvalidArgument when a name occurs
// twice, is not UTF-8 or is "__metadata__", when a tensor is not dense or has a dtype that Dtype
// lacks, or when the file cannot be created; kUnavailable when writing fails. An existing file is
// then untouched (but see DurableFile::Commit).
absl::StatusOr<FileFacts> WriteSafetensors(const SafetensorsContents& contents,
                                           const std::string& path,
                                           Folder folder = Folder::kOfUser);

}  // namespace muster::trainer
