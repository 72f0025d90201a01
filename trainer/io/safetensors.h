// Files in the format of https://github.com/huggingface/safetensors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/durable_file.h"
#include "trainer/io/file_facts.h"
#include "trainer/named_tensor.h"

namespace muster::trainer {

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

// Writes `contents`, tensors with larger elements first so that each is aligned. The file appears
// complete or not at all. Copies at most one tensor at a time. kInvalidArgument when a name occurs
// twice, is not UTF-8 or is "__metadata__", when a tensor is not dense or has a dtype that Dtype
// lacks, or when the file cannot be created; kUnavailable when writing fails. An existing file is
// then untouched (but see DurableFile::Commit).
absl::Status WriteSafetensors(const SafetensorsContents& contents, const std::string& path);
// The same, and says what the file holds.
absl::StatusOr<FileFacts> WriteSafetensorsFile(const SafetensorsContents& contents,
                                               const std::string& path,
                                               Folder folder = Folder::kOfUser);

}  // namespace muster::trainer
