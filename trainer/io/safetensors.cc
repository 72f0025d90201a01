#include "trainer/io/safetensors.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <string_view>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "trainer/io/formats/files.h"
#include "trainer/io/formats/safetensors_header.h"
#include "trainer/runtime/failure.h"

namespace muster::trainer {
namespace {

constexpr std::array<std::pair<Dtype, at::ScalarType>, 10> kTypes = {{
    {Dtype::kFloat64, at::kDouble},
    {Dtype::kFloat32, at::kFloat},
    {Dtype::kFloat16, at::kHalf},
    {Dtype::kBfloat16, at::kBFloat16},
    {Dtype::kInt64, at::kLong},
    {Dtype::kInt32, at::kInt},
    {Dtype::kInt16, at::kShort},
    {Dtype::kInt8, at::kChar},
    {Dtype::kUint8, at::kByte},
    {Dtype::kBool, at::kBool},
}};

}  // namespace

absl::StatusOr<Dtype> DtypeOf(const at::Tensor& tensor, const std::string& name) {
  const bool plain = tensor.defined() && tensor.layout() == at::kStrided;
  for (const auto& [dtype, type] : kTypes) {
    if (plain && type == tensor.scalar_type()) return dtype;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the tensor ", name, " is not dense, or of a dtype that is not written"));
}

at::ScalarType ScalarTypeOf(Dtype dtype) {
  return kTypes[static_cast<std::size_t>(dtype)].second;
}

at::Tensor EmptyTensor(Dtype dtype, std::int64_t elements) {
  return at::empty({elements}, ScalarTypeOf(dtype));
}

ElementsKey KeyOfElements(const at::Tensor& tensor) {
  return {tensor.data_ptr(), tensor.scalar_type(), tensor.sizes().vec(), tensor.strides().vec()};
}

at::Tensor DenseOnCpu(const at::Tensor& tensor) {
  return tensor.detach().cpu().contiguous().resolve_conj().resolve_neg();
}

std::string_view BytesOf(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()};
}

namespace {

absl::StatusOr<SafetensorsContents> ReadContents(const ByteSource& source) {
  absl::StatusOr<SafetensorsHeader> header = ReadSafetensorsHeader(source);
  if (!header.ok()) return header.status();
  FileFacts facts;
  facts.crc32 = header->crc32_before;
  SafetensorsContents contents;
  contents.metadata = std::move(header->metadata);
  for (const SafetensorsEntry& entry : header->entries) {
    const at::Tensor flat =
        EmptyTensor(entry.dtype, static_cast<std::int64_t>(entry.size / ElementSize(entry.dtype)));
    const absl::Status status =
        source.Read(header->data_offset + entry.offset, flat.data_ptr(), entry.size);
    if (!status.ok()) return status;
    const std::string_view bytes = BytesOf(flat);
    if (header->checksum) facts.Add(bytes);
    if (entry.dtype == Dtype::kBool && !AreBools(bytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat("it is damaged: ", entry.name, " has a bool neither true nor false"));
    }
    contents.tensors.push_back({entry.name, flat.view(entry.sizes)});
  }
  if (header->checksum && *header->checksum != facts.crc32) {
    return absl::InvalidArgumentError(
        "it is damaged: it is not what its checksum says; take another copy of the file");
  }
  return contents;
}

}  // namespace

absl::StatusOr<SafetensorsContents> ReadSafetensors(const std::string& path) {
  absl::StatusOr<std::unique_ptr<FileSource>> source = FileSource::Open(path);
  if (!source.ok()) return source.status();
  try {
    absl::StatusOr<SafetensorsContents> contents = ReadContents(**source);
    if (contents.ok()) return contents;
    return ReadFailure(path, contents.status());
  } catch (const std::exception& error) {  // there is no memory for the tensors
    return absl::UnavailableError(absl::StrCat("read ", path, ": ", OneLine(error)));
  }
}

absl::StatusOr<FileFacts> WriteSafetensors(const SafetensorsContents& contents,
                                           const std::string& path, Folder folder) {
  const auto refused = [&](const absl::Status& status) {
    return absl::InvalidArgumentError(absl::StrCat("write ", path, ": ", status.message()));
  };
  std::vector<const NamedTensor*> tensors;
  for (const NamedTensor& named : contents.tensors) {
    const absl::Status written = DtypeOf(named.tensor, named.name).status();
    if (!written.ok()) return refused(written);
    tensors.push_back(&named);
  }
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto* a, const auto* b) {
    return a->tensor.element_size() > b->tensor.element_size();
  });
  SafetensorsHeader header;
  header.metadata = contents.metadata;
  for (const NamedTensor* named : tensors) {
    header.entries.push_back({.name = named->name,
                              .dtype = *DtypeOf(named->tensor, named->name),
                              .sizes = named->tensor.sizes().vec()});
  }
  absl::StatusOr<std::string> beginning = LayOutSafetensors(header);
  if (!beginning.ok()) return refused(beginning.status());

  absl::StatusOr<std::unique_ptr<DurableFile>> file = DurableFile::Create(path, folder);
  if (!file.ok()) return file.status();
  FileFacts facts;
  const auto append = [&](std::string_view bytes) {
    facts.Add(bytes);
    return (*file)->Append(bytes);
  };
  try {
    FileFacts unmarked;
    unmarked.Add(*beginning);
    for (const NamedTensor* named : tensors) unmarked.Add(BytesOf(DenseOnCpu(named->tensor)));
    SetSafetensorsChecksum(unmarked.crc32, *beginning);
    if (absl::Status status = append(*beginning); !status.ok()) return status;
    for (const NamedTensor* named : tensors) {
      const at::Tensor dense = DenseOnCpu(named->tensor);
      if (absl::Status status = append(BytesOf(dense)); !status.ok()) return status;
    }
  } catch (const std::exception& error) {  // a tensor cannot be copied to the CPU
    return absl::UnavailableError(absl::StrCat("write ", path, ": ", OneLine(error)));
  }
  if (absl::Status status = (*file)->Commit(); !status.ok()) return status;
  return facts;
}

bool IsSafetensors(const std::string& path) {
  if (absl::EndsWith(path, ".safetensors")) return true;
  // Eight bytes with the size of the header, a JSON object; a file of torch.save begins as an
  // archive, with "PK".
  char start[9] = "";
  std::ifstream file(path, std::ios::binary);
  return file.read(start, sizeof(start)) && start[8] == '{' && std::string_view(start, 2) != "PK";
}

}  // namespace muster::trainer
