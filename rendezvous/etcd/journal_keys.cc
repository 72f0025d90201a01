#include "rendezvous/etcd/journal_keys.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

#include "proto/staged_batch.pb.h"

namespace muster::rendezvous::etcd {
namespace {

constexpr std::size_t kHeader = 8;         // the number of chunks, and the checksum
constexpr std::size_t kLikelyChunks = 64;  // of a value at most; more are taken all the same

bool IsPlain(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
}

std::string Encode(std::string_view name) {
  std::string encoded;
  for (const char c : name) {
    if (IsPlain(c)) {
      encoded += c;
    } else {
      absl::StrAppend(&encoded, "%",
                      absl::Hex(static_cast<unsigned char>(c), absl::PadSpec::kZeroPad2));
    }
  }
  // An empty name would make two slashes in a row, which is well; but not be seen by who reads it.
  return encoded.empty() ? "%" : encoded;
}

std::optional<std::string> Decode(std::string_view encoded) {
  std::string name;
  if (encoded == "%") return name;
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    if (encoded[i] != '%') {
      name += encoded[i];
      continue;
    }
    std::uint32_t byte = 0;
    const std::string_view digits = encoded.substr(i + 1, 2);
    if (digits.size() != 2 || !absl::SimpleHexAtoi({digits.data(), digits.size()}, &byte)) {
      return std::nullopt;
    }
    name += static_cast<char>(byte);
    i += 2;
  }
  return name;
}

void AppendNumber(std::string& bytes, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift);
}

std::uint32_t NumberAt(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = at; i < at + 4; ++i) {
    number = number << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return number;
}

absl::Status Damaged(std::string_view place) {
  return absl::DataLossError(absl::StrCat("the data in etcd under ", std::string(place),
                                          " is not what was written there"));
}

}  // namespace

std::string JournalKeys::Job(std::string_view run_id) const {
  return absl::StrCat(root_, "/jobs/", Encode(run_id));
}

std::string JournalKeys::Entry(std::string_view run_id, std::string_view key) const {
  return absl::StrCat(root_, "/store/", Encode(run_id), "/", Encode(key));
}

Range JournalKeys::EntriesOf(std::string_view run_id) const {
  return Under(absl::StrCat(root_, "/store/", Encode(run_id)));
}

std::optional<std::string> JournalKeys::RunIdOf(std::string_view place) const {
  absl::string_view rest(place.data(), place.size());
  if (!absl::ConsumePrefix(&rest, absl::StrCat(root_, "/jobs/"))) return std::nullopt;
  return Decode({rest.data(), rest.size()});
}

std::optional<std::pair<std::string, std::string>> JournalKeys::EntryOf(
    std::string_view place) const {
  absl::string_view rest(place.data(), place.size());
  if (!absl::ConsumePrefix(&rest, absl::StrCat(root_, "/store/"))) return std::nullopt;
  const std::size_t slash = rest.find('/');
  if (slash == absl::string_view::npos) return std::nullopt;
  auto run_id = Decode({rest.data(), slash});
  auto key = Decode({rest.data() + slash + 1, rest.size() - slash - 1});
  if (!run_id || !key) return std::nullopt;
  return std::pair(*std::move(run_id), *std::move(key));
}

int PageSize::Next(int unit) {
  // Half of what a unit may have.
  constexpr std::size_t kBytesOfUnit = kChunkBytes / 2;
  constexpr int kMost = 8192;
  constexpr int kGrowth = 8;
  int keys = unit;
  if (each_) {
    const std::size_t fit = static_cast<std::size_t>(unit) * kBytesOfUnit / (*each_ + 1);
    keys = static_cast<int>(
        std::clamp<std::size_t>(fit, unit, std::max(unit, std::min(kMost, asked_ * kGrowth))));
  }
  is_unit_ = keys == unit;
  return asked_ = keys;
}

void PageSize::Had(std::size_t keys, std::size_t bytes) {
  if (keys > 0) each_ = bytes / keys;
}

bool PageSize::Shrink() {
  each_.reset();
  return !is_unit_;
}

std::vector<Put> ToChunks(const std::string& place, std::string_view value) {
  const std::size_t count =
      std::max<std::size_t>(1, (value.size() + kChunkBytes - 1) / kChunkBytes);
  std::vector<Put> chunks;
  for (std::size_t i = 0; i < count; ++i) {
    std::string bytes;
    if (i == 0) {
      AppendNumber(bytes, static_cast<std::uint32_t>(count));
      AppendNumber(bytes, Checksum({place, value}));
    }
    const std::size_t begin = std::min(i * kChunkBytes, value.size());
    bytes.append(value.substr(begin, kChunkBytes));
    chunks.push_back({absl::StrFormat("%s/%04x", place, i), std::move(bytes)});
  }
  return chunks;
}

absl::StatusOr<std::optional<ChunkReader::Value>> ChunkReader::Take(const KeyValue& key) {
  const std::size_t slash = key.key.rfind('/');
  if (slash == std::string::npos) return Damaged(key.key);
  const std::string place = key.key.substr(0, slash);
  std::string_view bytes = key.value;
  if (expected_ == 0) {
    if (bytes.size() < kHeader) return Damaged(place);
    expected_ = NumberAt(bytes, 0);
    crc_ = NumberAt(bytes, 4);
    bytes.remove_prefix(kHeader);
    value_ = {.place = place};
    // What is told may be damaged.
    if (expected_ > 1) value_.bytes.reserve(std::min(expected_, kLikelyChunks) * kChunkBytes);
  }
  const std::string chunk = absl::StrFormat("%04x", value_.chunks);
  if (expected_ == 0 || place != value_.place || key.key.substr(slash + 1) != chunk) {
    return Damaged(place);
  }
  value_.bytes.append(bytes);
  if (++value_.chunks < expected_) return std::nullopt;
  expected_ = 0;
  if (Checksum({value_.place, value_.bytes}) != crc_) return Damaged(place);
  return std::exchange(value_, {});
}

absl::Status ChunkReader::End() const {
  return expected_ == 0 ? absl::OkStatus() : Damaged(value_.place);
}

namespace {

// Collects operations, and begins another transaction where one is full, or where keys that were
// changed are changed again.
class Cutter {
 public:
  void Add(Put put) {
    Make(1, put.key.size() + put.value.size(), Overlaps({put.key, ""}));
    changed_.push_back({put.key, ""});
    transactions_.back().emplace_back(std::move(put));
  }

  void Clear(Range range) {
    Make(1, range.key.size() + range.end.size(), Overlaps(range));
    transactions_.back().emplace_back(Delete{range.key, range.end});
    changed_.push_back(std::move(range));
  }

  std::vector<std::vector<Operation>> Take() { return std::move(transactions_); }

 private:
  // Two ranges have a key in common. There are a hundred at most.
  bool Overlaps(const Range& range) const {
    const auto after = [](const Range& r) { return r.end.empty() ? r.key + '\0' : r.end; };
    for (const Range& each : changed_) {
      if (each.key < after(range) && range.key < after(each)) return true;
    }
    return false;
  }

  void Make(std::size_t operations, std::size_t bytes, bool anew) {
    const bool full = operations_ + operations > kMostOperations || bytes_ + bytes > kMostBytes;
    if (transactions_.empty() || anew || full) {
      transactions_.emplace_back();
      changed_.clear();
      operations_ = bytes_ = 0;
    }
    operations_ += operations;
    bytes_ += bytes;
  }

  std::vector<std::vector<Operation>> transactions_;
  std::vector<Range> changed_;  // in the last one
  std::size_t operations_ = 0;
  std::size_t bytes_ = 0;
};

void Set(const std::string& place, const std::string& value, LargeValues& large, Cutter& cutter) {
  std::vector<Put> chunks = ToChunks(place, value);
  const auto known = large.find(place);
  const std::size_t before = known == large.end() ? 1 : known->second;
  if (chunks.size() < before) {
    cutter.Clear({absl::StrFormat("%s/%04x", place, chunks.size()), JournalKeys::Under(place).end});
  }
  if (chunks.size() > 1) {
    large[place] = chunks.size();
  } else if (known != large.end()) {
    large.erase(known);
  }
  for (Put& put : chunks) cutter.Add(std::move(put));
}

void Forget(const std::string& place, LargeValues& large, Cutter& cutter) {
  large.erase(place);
  cutter.Clear(JournalKeys::Under(place));
}

}  // namespace

std::vector<std::vector<Operation>> PlanBatch(const JournalBatch& batch, const JournalKeys& keys,
                                              LargeValues& large) {
  Cutter cutter;
  for (const JournalBatch::Job& job : batch.jobs) {
    const std::string place = keys.Job(job.run_id);
    if (job.record) {
      Set(place, *job.record, large, cutter);
      continue;
    }
    Forget(place, large, cutter);
    Range entries = keys.EntriesOf(job.run_id);
    large.erase(large.lower_bound(entries.key), large.lower_bound(entries.end));
    cutter.Clear(std::move(entries));
  }
  for (const JournalBatch::Entry& entry : batch.entries) {
    const std::string place = keys.Entry(entry.run_id, entry.key);
    if (entry.value) {
      Set(place, *entry.value, large, cutter);
    } else {
      Forget(place, large, cutter);
    }
  }
  return cutter.Take();
}

std::string ToStaged(const JournalBatch& batch) {
  v1::StagedBatch staged;
  for (const JournalBatch::Job& job : batch.jobs) {
    v1::StagedBatch::Job& each = *staged.add_jobs();
    each.set_run_id(job.run_id);
    if (job.record) each.set_record(*job.record);
  }
  for (const JournalBatch::Entry& entry : batch.entries) {
    v1::StagedBatch::Entry& each = *staged.add_entries();
    each.set_run_id(entry.run_id);
    each.set_key(entry.key);
    if (entry.value) each.set_value(*entry.value);
  }
  return staged.SerializeAsString();
}

absl::StatusOr<JournalBatch> FromStaged(const std::string& bytes) {
  v1::StagedBatch staged;
  if (!staged.ParseFromString(bytes)) {
    return absl::DataLossError("the batch that was being written to etcd cannot be read");
  }
  JournalBatch batch;
  for (const v1::StagedBatch::Job& job : staged.jobs()) {
    batch.jobs.push_back({job.run_id(), std::nullopt});
    if (job.has_record()) batch.jobs.back().record = job.record();
  }
  for (const v1::StagedBatch::Entry& entry : staged.entries()) {
    batch.entries.push_back({entry.run_id(), entry.key(), std::nullopt});
    if (entry.has_value()) batch.entries.back().value = entry.value();
  }
  return batch;
}

std::vector<std::vector<Operation>> PlanParts(const std::string& staged, const JournalKeys& keys) {
  Cutter cutter;
  for (Put& put : ToChunks(keys.Batch(), staged)) cutter.Add(std::move(put));
  return cutter.Take();
}

}  // namespace muster::rendezvous::etcd
