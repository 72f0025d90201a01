#include "rendezvous/pages/exposition.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace muster::rendezvous {
namespace {

std::string Escaped(std::string_view value) {
  return absl::StrReplaceAll(absl::string_view(value.data(), value.size()),
                             {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
}

}  // namespace

void DurationHistogram::Observe(double seconds) {
  const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), seconds) - kBounds.begin();
  ++counts_[static_cast<std::size_t>(bucket)];
  sum_ += seconds;
}

std::uint64_t DurationHistogram::UpTo(std::size_t i) const {
  const auto end = counts_.begin() + static_cast<std::ptrdiff_t>(i) + 1;
  return std::accumulate(counts_.begin(), end, std::uint64_t{0});
}

void Exposition::Counter(std::string_view name, std::string_view help) {
  Begin(name, "counter", help);
}

void Exposition::Gauge(std::string_view name, std::string_view help) {
  Begin(name, "gauge", help);
}

void Exposition::Sample(double value, const Labels& labels) {
  Line(name_, labels, value);
}

void Exposition::Histogram(std::string_view name, std::string_view help,
                           const DurationHistogram& histogram) {
  Begin(name, "histogram", help);
  const std::string bucket = absl::StrCat(name_, "_bucket");
  for (std::size_t i = 0; i < DurationHistogram::kBounds.size(); ++i) {
    const std::string bound = absl::StrCat(DurationHistogram::kBounds[i]);
    Line(bucket, {{"le", bound}}, static_cast<double>(histogram.UpTo(i)));
  }
  const auto all = static_cast<double>(histogram.UpTo(DurationHistogram::kBounds.size()));
  Line(bucket, {{"le", "+Inf"}}, all);
  Line(absl::StrCat(name_, "_sum"), {}, histogram.sum());
  Line(absl::StrCat(name_, "_count"), {}, all);
}

void Exposition::Begin(std::string_view name, std::string_view type, std::string_view help) {
  name_ = std::string(name);
  absl::StrAppend(&text_, "# HELP ", name_, " ", std::string(help), "\n# TYPE ", name_, " ",
                  std::string(type), "\n");
}

void Exposition::Line(std::string_view name, const Labels& labels, double value) {
  absl::StrAppend(&text_, std::string(name));
  const char* separator = "{";
  for (const auto& [label, of] : labels) {
    absl::StrAppend(&text_, separator, std::string(label), "=\"", Escaped(of), "\"");
    separator = ",";
  }
  // As many digits as make the number again.
  absl::StrAppend(&text_, labels.empty() ? "" : "}", " ", absl::StrFormat("%.15g", value), "\n");
}

}  // namespace muster::rendezvous
