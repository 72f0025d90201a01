#include "rendezvous/pages/exposition.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
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

// As many digits as make the number again.
std::string ValueText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return absl::StrFormat("%.15g", value);
}

}  // namespace

void Exposition::Counter(std::string_view name, std::string_view help) {
  Begin(name, "counter", help);
}

void Exposition::Gauge(std::string_view name, std::string_view help) {
  Begin(name, "gauge", help);
}

void Exposition::Sample(double value, const Labels& labels) {
  Line(name_, labels, value);
}

void Exposition::Histogram(std::string_view name, std::string_view help) {
  Begin(name, "histogram", help);
}

void Exposition::Buckets(const base::DurationHistogram& histogram, const Labels& labels) {
  const std::string bucket = absl::StrCat(name_, "_bucket");
  const auto line = [&](std::size_t i, std::string_view bound) {
    Labels with_bound = labels;
    with_bound.emplace_back("le", bound);
    Line(bucket, with_bound, static_cast<double>(histogram.UpTo(i)));
  };
  for (std::size_t i = 0; i < histogram.bounds().size(); ++i) {
    line(i, absl::StrCat(InSeconds(histogram.bounds()[i])));
  }
  line(histogram.bounds().size(), "+Inf");
  Line(absl::StrCat(name_, "_sum"), labels, InSeconds(histogram.sum()));
  Line(absl::StrCat(name_, "_count"), labels, static_cast<double>(histogram.count()));
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
  absl::StrAppend(&text_, labels.empty() ? "" : "}", " ", ValueText(value), "\n");
}

}  // namespace muster::rendezvous
