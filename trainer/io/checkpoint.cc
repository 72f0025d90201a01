#include "trainer/io/checkpoint.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "trainer/core/one_line.h"
#include "trainer/io/durable_file.h"

namespace muster::trainer {
namespace {

// The class that torch.save names for the storage of a dtype (torch/__init__.py); nullopt for those
// it has none for.
std::optional<std::string> StorageClass(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "FloatStorage";
    case at::kDouble:
      return "DoubleStorage";
    case at::kHalf:
      return "HalfStorage";
    case at::kBFloat16:
      return "BFloat16Storage";
    case at::kLong:
      return "LongStorage";
    case at::kInt:
      return "IntStorage";
    case at::kByte:
      return "ByteStorage";
    case at::kBool:
      return "BoolStorage";
    default:
      return std::nullopt;
  }
}

// Writes the few pickle opcodes (protocol 2, Python's pickletools.py) that a state dict takes.
class Pickle {
 public:
  Pickle() { bytes_ = "\x80\x02"; }

  void Mark() { bytes_ += '('; }
  void Tuple() { bytes_ += 't'; }  // of what follows the mark
  void EmptyTuple() { bytes_ += ')'; }
  void Call() { bytes_ += 'R'; }  // a global with a tuple
  void PersistentId() { bytes_ += 'Q'; }
  void SetItems() { bytes_ += 'u'; }  // the pairs that follow the mark
  void False() { bytes_ += '\x89'; }
  void Global(std::string_view module, std::string_view name) {
    bytes_.append("c").append(module).append("\n").append(name).append("\n");
  }
  void String(std::string_view text) {
    bytes_ += 'X';
    Number(static_cast<std::uint32_t>(text.size()));
    bytes_ += text;
  }
  void Integer(std::int64_t value) {
    bytes_ += "\x8a\x08";  // LONG1 of 8 bytes
    Number(value);
  }
  void Integers(at::IntArrayRef values) {
    Mark();
    for (const std::int64_t value : values) Integer(value);
    Tuple();
  }
  std::string Finish() && { return std::move(bytes_) + '.'; }

 private:
  template <typename T>
  void Number(T value) {  // little-endian, as this machine is
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  std::string bytes_;
};

// What torch._utils._rebuild_tensor_v2 is called with for `tensor`, whose elements are record
// data/<key>.
void PickleTensor(Pickle& pickle, const at::Tensor& tensor, const std::string& storage_class,
                  std::size_t key) {
  pickle.Global("torch._utils", "_rebuild_tensor_v2");
  pickle.Mark();
  pickle.Mark();
  pickle.String("storage");
  pickle.Global("torch", storage_class);
  pickle.String(absl::StrCat(key));
  pickle.String("cpu");
  pickle.Integer(tensor.numel());
  pickle.Tuple();
  pickle.PersistentId();
  pickle.Integer(0);  // offset into the storage
  pickle.Integers(tensor.sizes());
  pickle.Integers(tensor.strides());
  pickle.False();                               // requires_grad
  pickle.Global("collections", "OrderedDict");  // backward hooks
  pickle.EmptyTuple();
  pickle.Call();
  pickle.Tuple();
  pickle.Call();
}

// Writes the zip file: the pickle first, then a record for each tensor, as
// torch.serialization._save does. The first error of the file is left in `status`.
void WriteRecords(const std::string& pickle, const std::vector<at::Tensor>& tensors,
                  DurableFile& file, absl::Status& status) {
  caffe2::serialize::PyTorchStreamWriter zip([&](const void* bytes, std::size_t size) {
    if (status.ok()) status = file.Append({static_cast<const char*>(bytes), size});
    // The zip writer is never told of a failure: its destructor would throw, and end the process.
    return size;
  });
  zip.writeRecord("data.pkl", pickle.data(), pickle.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    zip.writeRecord(absl::StrCat("data/", i), tensors[i].data_ptr(), tensors[i].nbytes());
  }
  zip.writeEndOfFile();
}

}  // namespace

absl::Status SaveStateDict(const std::vector<NamedTensor>& tensors, const std::string& path) {
  Pickle pickle;
  std::vector<at::Tensor> storages;
  pickle.Global("collections", "OrderedDict");
  pickle.EmptyTuple();
  pickle.Call();
  pickle.Mark();
  for (const NamedTensor& named : tensors) {
    const std::optional<std::string> storage_class = StorageClass(named.tensor.scalar_type());
    if (!storage_class) {
      return absl::InvalidArgumentError(absl::StrCat(
          "write ", path, ": ", named.name, " has a dtype that torch.save has no storage for"));
    }
    storages.push_back(named.tensor.detach().cpu().contiguous());
    pickle.String(named.name);
    PickleTensor(pickle, storages.back(), *storage_class, storages.size() - 1);
  }
  pickle.SetItems();

  absl::StatusOr<std::unique_ptr<DurableFile>> file = DurableFile::Create(path);
  if (!file.ok()) return file.status();
  absl::Status written;
  try {
    WriteRecords(std::move(pickle).Finish(), storages, **file, written);
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("write ", path, ": ", OneLine(error)));
  }
  if (!written.ok()) return written;
  return (*file)->Commit();
}

}  // namespace muster::trainer
