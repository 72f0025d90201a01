#include "trainer/io/formats/safetensors_header.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "trainer/io/formats/files.h"

namespace muster::trainer {
namespace {

using nlohmann::json;

constexpr char kMetadata[] = "__metadata__";
// The checksum is found by either word, so that a bit that has changed in one of them is found,
// too.
constexpr char kChecksum[] = "muster.checksum";
constexpr std::string_view kOfWhat = "crc32 with these digits as zeros: ";
constexpr std::size_t kDigits = 8;
// How the text ends where its checksum is its own. A program that writes other tensors with the
// metadata it has read copies the checksum, too, and pads with less than these.
constexpr std::size_t kOwnPadding = 16;  // spaces
constexpr std::uint64_t kLengthSize = 8;
constexpr std::uint64_t kLargestHeader = 100'000'000;  // as safetensors' own reader allows
constexpr int kDeepestHeader = 3;                      // the header, a tensor, its shape

absl::Status Damaged(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("it is damaged: ", what));
}

// How many bytes the header's text has, as the file begins.
std::string LengthBytes(std::uint64_t length) {
  std::string bytes;
  for (std::size_t i = 0; i < kLengthSize; ++i) bytes += static_cast<char>(length >> (8 * i));
  return bytes;
}

// The bytes that a tensor takes; nullopt when they are more than there can be.
std::optional<std::uint64_t> BytesFor(Dtype dtype, const std::vector<std::int64_t>& sizes) {
  std::int64_t bytes = static_cast<std::int64_t>(ElementSize(dtype));
  bool overflow = false;
  for (const std::int64_t size : sizes) overflow |= __builtin_mul_overflow(bytes, size, &bytes);
  if (overflow) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

// A list of numbers that are not negative; false if `value` is something else.
bool Numbers(const json& value, std::vector<std::int64_t>& out) {
  if (!value.is_array()) return false;
  for (const json& item : value) {
    if (!item.is_number_unsigned()) return false;
    const std::uint64_t number = item.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return false;
    out.push_back(static_cast<std::int64_t>(number));
  }
  return true;
}

absl::StatusOr<SafetensorsEntry> ReadEntry(const std::string& name, const json& value) {
  const auto wrong = [&](const char* what) { return Damaged(absl::StrCat(name, " has ", what)); };
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
      !value["dtype"].is_string() || !value.contains("shape") || !value.contains("data_offsets")) {
    return wrong("no dtype, shape and data_offsets");
  }
  SafetensorsEntry entry = {.name = name};
  const std::string dtype = value["dtype"].get<std::string>();
  const std::optional<Dtype> known = FromSafetensorsName(dtype);
  if (!known) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is of dtype ", dtype, ", which is not read here"));
  }
  entry.dtype = *known;
  std::vector<std::int64_t> offsets;
  if (!Numbers(value["shape"], entry.sizes) || entry.sizes.size() > 64) return wrong("a bad shape");
  if (!Numbers(value["data_offsets"], offsets) || offsets.size() != 2 || offsets[0] > offsets[1]) {
    return wrong("bad data_offsets");
  }
  entry.offset = static_cast<std::uint64_t>(offsets[0]);
  entry.size = static_cast<std::uint64_t>(offsets[1] - offsets[0]);
  if (BytesFor(entry.dtype, entry.sizes) != entry.size) return wrong("data of another size");
  return entry;
}

std::string Digits(std::uint32_t checksum) {
  return absl::StrFormat("%08x", checksum);
}

// The place of the checksum's digits in the header's text; npos if there is none.
std::size_t PlaceOfDigits(std::string_view text) {
  const std::size_t words = text.find(kOfWhat);
  const std::size_t place = words + kOfWhat.size();
  return words == text.npos || text.size() - place < kDigits ? text.npos : place;
}

// Takes the checksum out of `header`, whose text is `text` behind its length. OK as well when there
// is none.
absl::Status TakeChecksum(const std::string& text, SafetensorsHeader& header) {
  auto entry = header.metadata.find(kChecksum);
  for (auto other = header.metadata.begin();
       entry == header.metadata.end() && other != header.metadata.end(); ++other) {
    if (other->second.starts_with(kOfWhat)) entry = other;
  }
  if (entry == header.metadata.end()) return absl::OkStatus();
  // All but one: a bit may have changed in one.
  const std::string_view end = std::string_view(text).substr(text.size() - kOwnPadding);
  if (std::count(end.begin(), end.end(), ' ') + 1 < static_cast<std::ptrdiff_t>(kOwnPadding)) {
    header.metadata.erase(entry);
    return absl::OkStatus();
  }
  const std::size_t place = PlaceOfDigits(text);
  std::uint32_t checksum = 0;
  if (place == text.npos || entry->second.size() != kOfWhat.size() + kDigits ||
      !absl::SimpleHexAtoi(entry->second.substr(kOfWhat.size()), &checksum) ||
      entry->second.substr(kOfWhat.size()) != Digits(checksum)) {
    return Damaged("its checksum is none");
  }
  FileFacts facts;
  facts.Add(LengthBytes(text.size()));
  facts.Add(std::string(text).replace(place, kDigits, kDigits, '0'));
  header.crc32_before = facts.crc32;
  header.checksum = checksum;
  header.metadata.erase(entry);
  return absl::OkStatus();
}

bool ReadMetadata(const json& value, std::map<std::string, std::string>& out) {
  if (!value.is_object()) return false;
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) return false;
    out.emplace(key, text.get<std::string>());
  }
  return true;
}

absl::StatusOr<std::string> ReadText(const ByteSource& source) {
  if (source.size() < kLengthSize) return Damaged("it is cut short");
  unsigned char bytes[kLengthSize] = {};
  if (absl::Status status = source.Read(0, bytes, sizeof(bytes)); !status.ok()) return status;
  std::uint64_t length = 0;
  for (std::size_t i = kLengthSize; i-- > 0;) length = length << 8 | bytes[i];
  if (length > std::min(source.size() - kLengthSize, kLargestHeader)) {
    return absl::InvalidArgumentError("it is not a safetensors file, or cut short");
  }
  std::string text(length, '\0');
  if (absl::Status status = source.Read(kLengthSize, text.data(), length); !status.ok()) {
    return status;
  }
  return text;
}

}  // namespace

absl::StatusOr<SafetensorsHeader> ReadSafetensorsHeader(const ByteSource& source) {
  absl::StatusOr<std::string> text = ReadText(source);
  if (!text.ok()) return text.status();
  if (text->empty() || text->front() != '{' || !IsShallow(*text, kDeepestHeader)) {
    return absl::InvalidArgumentError("it is not a safetensors file");
  }
  const json parsed = json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return Damaged("its header is not JSON");

  SafetensorsHeader header;
  header.data_offset = kLengthSize + text->size();
  for (const auto& [name, value] : parsed.items()) {
    if (name == kMetadata) {
      if (!ReadMetadata(value, header.metadata)) return Damaged("its metadata is not text");
      continue;
    }
    absl::StatusOr<SafetensorsEntry> entry = ReadEntry(name, value);
    if (!entry.ok()) return entry.status();
    header.entries.push_back(std::move(*entry));
  }
  const absl::Status checksum = TakeChecksum(*text, header);
  if (!checksum.ok()) return checksum;
  std::sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.offset, a.size, a.name) < std::tie(b.offset, b.size, b.name);
  });
  std::uint64_t end = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.offset != end)
      return Damaged(absl::StrCat("there is a gap or overlap at ", entry.name));
    end += entry.size;
  }
  if (end != source.size() - header.data_offset) return Damaged("it is cut short or has more data");
  return header;
}

absl::StatusOr<std::string> LayOutSafetensors(SafetensorsHeader& header) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  out[kMetadata] = header.metadata;
  out[kMetadata][kChecksum] = std::string(kOfWhat) + std::string(kDigits, '0');
  std::set<std::string> names = {kMetadata};
  std::uint64_t offset = 0;
  for (SafetensorsEntry& entry : header.entries) {
    if (!names.insert(entry.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("the name ", entry.name, " is taken"));
    }
    entry.offset = offset;
    entry.size = *BytesFor(entry.dtype, entry.sizes);  // of a tensor that is in memory
    offset += entry.size;
    out[entry.name] = {{"dtype", SafetensorsName(entry.dtype)},
                       {"shape", entry.sizes},
                       {"data_offsets", {entry.offset, offset}}};
  }
  std::string text;
  try {
    text = out.dump();
  } catch (const json::exception&) {
    return absl::InvalidArgumentError("a name or the metadata is not UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  text.append(kOwnPadding, ' ');
  header.data_offset = kLengthSize + text.size();
  return LengthBytes(text.size()) + text;
}

void SetSafetensorsChecksum(std::uint32_t crc32, std::string& beginning) {
  beginning.replace(PlaceOfDigits(beginning), kDigits, Digits(crc32));
}

bool IsShallow(std::string_view text, int most) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > most) return false;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return true;
}

}  // namespace muster::trainer
