// Feeds arbitrary bytes to the checkpoint readers, for libFuzzer (scripts/fuzz.sh) and
// for its test. The first byte of the input selects the reader:
//   'p'  the rest is the pickle of a file of torch.save
//   'z'  the rest is such a file
//   's'  the rest is a safetensors file
//   'i'  the rest is the index of shards
//   't'  the rest is the tree of such an index
//
// In addition to the sanitizers' checks: everything read must lie within the file, and a pickle, a
// tree or an index that was read can be written and reads back the same.
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "test/fuzz/fuzz.h"
#include "trainer/io/formats/pickle_reader.h"
#include "trainer/io/formats/safetensors_header.h"
#include "trainer/io/formats/shard_index.h"
#include "trainer/io/formats/torch_archive.h"
#include "trainer/io/formats/value_tree.h"

namespace muster::trainer {
namespace {

// Small, so that short inputs reach them.
constexpr PickleLimits kLimits = {.objects = 2000, .string_bytes = 4000, .depth = 20};

void CheckTensors(const StoredValue& value, const std::vector<Storage>& storages) {
  if (const StoredTensor* tensor = value.tensor()) {
    Check(tensor->storage < storages.size() && tensor->sizes.size() == tensor->strides.size());
    std::int64_t last = tensor->offset;
    bool empty = false;
    for (std::size_t i = 0; i < tensor->sizes.size(); ++i) {
      empty |= tensor->sizes[i] == 0;
      if (tensor->sizes[i] > 0) last += (tensor->sizes[i] - 1) * tensor->strides[i];
    }
    Check(tensor->offset >= 0 && (empty || last < storages[tensor->storage].elements));
  }
  if (value.list() != nullptr) {
    for (const StoredValue& item : *value.list()) CheckTensors(item, storages);
  }
  if (value.dict() != nullptr) {
    for (const auto& [key, item] : *value.dict()) CheckTensors(item, storages);
  }
}

void FeedPickle(std::string_view bytes) {
  const auto contents = ReadPickle(bytes, kLimits);
  if (!contents.ok()) return;
  CheckTensors(contents->value, contents->storages);
  const auto written = WritePickle(contents->value, contents->storages);
  Check(written.ok());
  // Without references each object is there once more, so that the small limits may be too small.
  const auto again = ReadPickle(*written);
  Check(again.ok());
  Check(WritePickle(again->value, again->storages).value() == *written);
}

void FeedArchive(std::string_view bytes) {
  const MemorySource source(bytes);
  const auto archive = TorchArchive::Open(source);
  if (!archive.ok()) return;
  CheckTensors(archive->value(), archive->storages());
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < archive->storages().size(); ++i) {
    const Storage& storage = archive->storages()[i];
    const std::uint64_t size =
        static_cast<std::uint64_t>(storage.elements) * ElementSize(storage.dtype);
    total += size;
    Check(total <= bytes.size());
    std::string elements(size, '\0');
    (void)archive->ReadStorage(i, elements.data());
  }
}

void FeedSafetensors(std::string_view bytes) {
  const MemorySource source(bytes);
  auto header = ReadSafetensorsHeader(source);
  if (!header.ok()) return;
  std::uint64_t end = header->data_offset;
  for (const SafetensorsEntry& entry : header->entries) {
    Check(header->data_offset + entry.offset == end);
    end += entry.size;
  }
  Check(end == bytes.size());
  Check(LayOutSafetensors(*header).ok());
}

void FeedIndex(std::string_view bytes) {
  const auto index = ReadShardIndex(bytes);
  if (!index.ok()) return;
  const std::string written = ShardIndexText(*index);
  Check(ShardIndexText(ReadShardIndex(written).value()) == written);
}

void FeedTree(std::string_view bytes) {
  if (!IsShallow(bytes, 400)) return;
  const auto json = nlohmann::json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return;
  const auto tree = ReadTreeJson(json);
  if (!tree.ok()) return;
  const std::string written = TreeJson(*tree).dump();
  Check(TreeJson(ReadTreeJson(nlohmann::json::parse(written)).value()).dump() == written);
}

}  // namespace
}  // namespace muster::trainer

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace muster::trainer;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'p') FeedPickle(bytes);
  if (data[0] == 'z') FeedArchive(bytes);
  if (data[0] == 's') FeedSafetensors(bytes);
  if (data[0] == 'i') FeedIndex(bytes);
  if (data[0] == 't') FeedTree(bytes);
  return 0;
}
