#include "test/trainer/io/interop_files.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "trainer/io/safetensors.h"
#include "trainer/io/state_dict.h"
#include "trainer/io/torch_file.h"

namespace muster::trainer {
namespace {

void MustBeOk(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}

std::string DescribeTensor(const at::Tensor& tensor) {
  const at::Tensor dense = DenseOnCpu(tensor);
  return absl::StrCat(PythonName(*DtypeOf(tensor, "")), "[",
                      absl::StrJoin(tensor.sizes().vec(), ","),
                      "]:", absl::BytesToHexString(std::string(BytesOf(dense))));
}

// As json.dumps writes plain text.
std::string DescribeString(const std::string& text) {
  return absl::StrCat("\"", text, "\"");
}

std::string DescribeItems(const Value::List& items) {
  std::vector<std::string> parts;
  for (const Value& item : items) parts.push_back(Describe(item));
  return absl::StrJoin(parts, ",");
}

std::string DescribeDict(const Dict& dict) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : dict) {
    const auto* name = std::get_if<std::string>(&key);
    parts.push_back(absl::StrCat(
        name != nullptr ? DescribeString(*name) : absl::StrCat(std::get<std::int64_t>(key)), ":",
        Describe(value)));
  }
  return absl::StrCat(dict.ordered() ? "O{" : "{", absl::StrJoin(parts, ","), "}");
}

Value DictOf(const std::vector<NamedTensor>& tensors) {
  Dict dict;
  for (const NamedTensor& named : tensors) dict.Set(named.name, named.tensor);
  return dict;
}

// Every dtype, and every way to be a view.
std::vector<NamedTensor> Tensors() {
  const at::Tensor matrix = at::arange(6, at::kFloat).view({2, 3});
  const at::Tensor bucket = at::arange(1000, at::kFloat);
  return {
      {"matrix", matrix},
      {"matrix_again", matrix},
      {"transposed", matrix.t()},
      {"row", matrix[1]},
      {"slice_of_bucket", bucket.narrow(0, 10, 4)},
      {"expanded", at::ones({1}).expand({2, 3})},
      {"scalar", at::scalar_tensor(2.5)},
      {"empty", at::zeros({0, 4})},
      {"images",
       at::arange(24, at::kFloat).view({1, 2, 3, 4}).contiguous(at::MemoryFormat::ChannelsLast)},
      {"float64", at::full({1}, 1.0 / 3, at::kDouble)},
      {"float16", at::full({3}, 0.5, at::kHalf)},
      {"bfloat16", at::full({1}, 1.5, at::kBFloat16)},
      {"int64", at::full({1}, -(std::int64_t{1} << 40), at::kLong)},
      {"int32", at::full({1}, -7, at::kInt)},
      {"int16", at::full({1}, -300, at::kShort)},
      {"int8", at::full({3}, -3, at::kChar)},
      {"uint8", at::full({1}, 255, at::kByte)},
      {"bool", at::arange(4).remainder(2).to(at::kBool)},
      {"parameter", at::ones({2}).requires_grad_()},
  };
}

// No floats: the loader that PyTorch 1.13 has for weights_only refuses them.
Dict Values() {
  Dict dict;
  dict.Set("none", Value());
  dict.Set("true", true);
  dict.Set("false", false);
  dict.Set("ints", Value::List{0, 255, 256, -1, 65536, std::numeric_limits<std::int32_t>::min(),
                               std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::min()});
  dict.Set("text",
           "Gr\xc3\xbc\xc3\x9f"
           "e");
  dict.Set("no_text", "");
  dict.Set("nothing", Value::List{});
  dict.Set("tuple", Value::Tuple({1, Value::Tuple({}), Value::List{Value::List{}}}));
  Dict by_number;
  by_number.Set(std::int64_t{0}, "zero");
  by_number.Set(std::int64_t{-70000}, Dict());
  dict.Set("by_number", std::move(by_number));
  return dict;
}

}  // namespace

std::string Describe(const Value& value) {
  switch (value.kind()) {
    case ValueKind::kNone:
      return "None";
    case ValueKind::kBool:
      return *value.boolean() ? "True" : "False";
    case ValueKind::kInt:
      return absl::StrCat(*value.integer());
    case ValueKind::kFloat:
      return absl::StrCat(
          "f", absl::Hex(std::bit_cast<std::uint64_t>(*value.floating()), absl::kZeroPad16));
    case ValueKind::kString:
      return DescribeString(*value.string());
    case ValueKind::kTensor:
      return DescribeTensor(*value.tensor());
    case ValueKind::kList:
      return absl::StrCat("[", DescribeItems(*value.list()), "]");
    case ValueKind::kTuple:
      return absl::StrCat("(", DescribeItems(*value.list()), ")");
    case ValueKind::kDict:
      return DescribeDict(*value.dict());
  }
  std::abort();
}

std::string WriteFilesForPython(const std::string& dir) {
  Dict floats;
  floats.Set("floats",
             Value::List{0.0, -0.0, 1e-8, 1.0 / 3, std::numeric_limits<double>::infinity()});
  const std::map<std::string, Value> files = {
      {"ours_floats.pt", floats},
      {"ours_list.pt", Value::List{at::ones({2}), at::zeros({1})}},
      {"ours_state_dict.pt", StateDictValue(Tensors())},
      {"ours_tensor.pt", at::arange(3)},
      {"ours_values.pt", Values()},
  };
  std::string lines;
  const SafetensorsContents contents = {Tensors(), {{"format", "pt"}}};
  MustBeOk(WriteSafetensors(contents, dir + "/ours.safetensors").status());
  // The file has the larger elements first.
  std::vector<NamedTensor> sorted = Tensors();
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.tensor.element_size() > b.tensor.element_size();
  });
  absl::StrAppend(&lines, "ours.safetensors: ", Describe(DictOf(sorted)), "\n");
  for (const auto& [name, value] : files) {
    MustBeOk(WriteTorchFile(value, dir + "/" + name));
    absl::StrAppend(&lines, name, ": ", Describe(value), "\n");
  }
  return lines;
}

std::string DescribeFilesOfPython(const std::string& dir) {
  std::map<std::string, std::string> descriptions;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    const std::string name = entry.path().filename().string();
    const std::string path = entry.path().string();
    if (name.rfind("py", 0) != 0) continue;
    absl::Status status;
    std::string description;
    if (entry.path().extension() == ".safetensors") {
      absl::StatusOr<SafetensorsContents> contents = ReadSafetensors(path);
      status = contents.status();
      if (status.ok()) description = Describe(DictOf(contents->tensors));
    } else if (entry.path().extension() == ".pt") {
      absl::StatusOr<Value> value = ReadTorchFile(path);
      status = value.status();
      if (status.ok()) description = Describe(*value);
    } else {
      continue;
    }
    if (!status.ok()) {
      // Without the path, which varies.
      const std::string text(status.message());
      description = absl::StrCat("error: ", text.substr(text.find(name) + name.size() + 2));
    }
    descriptions[name] = description;
  }
  std::string lines;
  for (const auto& [name, description] : descriptions) {
    absl::StrAppend(&lines, name, ": ", description, "\n");
  }
  return lines;
}

void CopyCheckpoint(const std::string& from, const std::string& to) {
  absl::StatusOr<Value> value = ReadTorchFile(from);
  MustBeOk(value.status());
  MustBeOk(WriteTorchFile(*value, to));
}

}  // namespace muster::trainer
