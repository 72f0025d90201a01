#include "launcher/remote/host_list.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "base/failure.h"
#include "base/unique_fd.h"

namespace muster::launcher {
namespace {

// The default number of PIDs of a machine.
constexpr int kMaxWorkers = 32'768;

constexpr absl::string_view kExample = "write node0:8,node[1-3]:4";

// Whether all characters are letters, digits or in `others`. Rejects anything with a meaning to
// ssh, a shell or a terminal.
bool IsPlain(absl::string_view text, absl::string_view others) {
  return std::all_of(text.begin(), text.end(), [others](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::StrContains(others, absl::string_view(&c, 1));
  });
}

absl::Status Wrong(absl::string_view item, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("has '", absl::CHexEscape(item), "', which ", what));
}

// The text before and after the colon.
struct Parts {
  absl::string_view user;
  absl::string_view name;
  bool is_ipv6 = false;
  std::optional<absl::string_view> workers;
};

absl::StatusOr<Parts> TakeApart(absl::string_view item) {
  Parts parts;
  absl::string_view rest = item;
  if (const std::size_t at = rest.find('@'); at != absl::string_view::npos) {
    parts.user = rest.substr(0, at);
    rest.remove_prefix(at + 1);
    if (parts.user.empty()) return Wrong(item, "has no user before the @; write user@node0");
  }
  const std::size_t close = rest.find(']');
  parts.is_ipv6 = absl::StartsWith(rest, "[") && close != absl::string_view::npos &&
                  absl::StrContains(rest.substr(0, close), ':');
  if (parts.is_ipv6) {
    parts.name = rest.substr(1, close - 1);
    rest.remove_prefix(close + 1);
    if (!rest.empty() && rest.front() != ':') {
      return Wrong(item, "has text after an address in brackets; write [fd00::1]:4");
    }
    if (!rest.empty()) parts.workers = rest.substr(1);
    return parts;
  }
  const std::size_t colon = rest.find(':');
  parts.name = rest.substr(0, colon);
  if (colon == absl::string_view::npos) return parts;
  parts.workers = rest.substr(colon + 1);
  if (absl::StrContains(*parts.workers, ':')) {
    return Wrong(item, "has several colons; write an IPv6 address in brackets, as in [fd00::1]:4");
  }
  return parts;
}

constexpr std::size_t kMaxDigits = 9;

absl::Status TooMany() {
  return absl::InvalidArgumentError(
      absl::StrCat("stands for more than ", kMaxHosts, " hosts; check its ranges"));
}

bool IsNumber(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxDigits &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
}

// Expands "7", "7-12" or "07-12"; all numbers are as wide as the first.
absl::Status AppendRange(absl::string_view range, std::vector<std::string>& numbers) {
  const std::vector<absl::string_view> ends = absl::StrSplit(range, absl::MaxSplits('-', 1));
  const absl::string_view first = ends.front();
  const absl::string_view last = ends.back();
  if (!IsNumber(first) || !IsNumber(last)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has '", range,
        "' in its brackets, which is neither a number nor a range of numbers; write node[1-3,7]"));
  }
  int from = 0;
  int to = 0;
  if (!absl::SimpleAtoi(first, &from) || !absl::SimpleAtoi(last, &to)) return TooMany();
  if (from > to) {
    return absl::InvalidArgumentError(
        absl::StrCat("has a backward range, ", range, "; write ", last, "-", first));
  }
  if (static_cast<std::size_t>(to - from) >= kMaxHosts) return TooMany();
  for (int number = from; number <= to; ++number) {
    const std::string digits = absl::StrCat(number);
    const std::size_t zeros = first.size() > digits.size() ? first.size() - digits.size() : 0;
    numbers.push_back(absl::StrCat(std::string(zeros, '0'), digits));
  }
  return absl::OkStatus();
}

// Every name combined with every ending.
absl::StatusOr<std::vector<std::string>> Product(const std::vector<std::string>& names,
                                                 const std::vector<std::string>& endings) {
  if (names.size() * endings.size() > kMaxHosts) return TooMany();
  std::vector<std::string> product;
  product.reserve(names.size() * endings.size());
  for (const std::string& name : names) {
    for (const std::string& ending : endings) product.push_back(absl::StrCat(name, ending));
  }
  return product;
}

constexpr std::size_t kMaxBytes = 16 * 1024 * 1024;

absl::Status At(absl::string_view file, int line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(file, ":", line, ": ", what));
}

// Parses the words of a line; the error says what is wrong with them.
absl::StatusOr<std::vector<Host>> ParseWords(const std::vector<absl::string_view>& words) {
  auto hosts = ParseHosts(words.front());
  if (!hosts.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("this line ", hosts.status().message()));
  }
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> word =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    const bool is_limit = word.first == "max_slots" || word.first == "max-slots";
    if (word.first != "slots" && !is_limit) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown word '", absl::CHexEscape(words[i]),
                       "' after a host; only slots=N and comments (#) are allowed there"));
    }
    const auto workers = ParseWorkers(word.second);
    if (!workers.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(absl::CHexEscape(words[i]), " ", workers.status().message()));
    }
    if (is_limit) continue;
    for (Host& host : *hosts) {
      if (host.workers) {
        return absl::InvalidArgumentError(absl::StrCat("gives the number of workers twice for ",
                                                       host.Text(),
                                                       " has; keep the colon or slots="));
      }
      host.workers = *workers;
    }
  }
  return hosts;
}

}  // namespace

absl::StatusOr<int> ParseWorkers(absl::string_view text) {
  int workers = 0;
  if (!absl::SimpleAtoi(text, &workers) || workers < 1 || workers > kMaxWorkers) {
    return absl::InvalidArgumentError(
        absl::StrCat("is not a number of workers from 1 to ", kMaxWorkers));
  }
  return workers;
}

absl::StatusOr<std::vector<Host>> ParseHosts(absl::string_view item) {
  if (item.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("has no host between two commas; ", kExample));
  }
  const auto parts = TakeApart(item);
  if (!parts.ok()) return parts.status();
  Host host;
  host.user = std::string(parts->user);
  if (parts->workers) {
    const auto workers = ParseWorkers(*parts->workers);
    if (!workers.ok()) {
      return Wrong(item, absl::StrCat("says '", absl::CHexEscape(*parts->workers),
                                      "' behind the colon, which ", workers.status().message()));
    }
    host.workers = *workers;
  }
  if (absl::StartsWith(host.user, "-") || !IsPlain(host.user, "._+-$")) {
    return Wrong(item, "has characters before the @ that are not valid in a user name");
  }

  std::vector<std::string> names = {std::string(parts->name)};
  if (!parts->is_ipv6) {
    auto expanded = ExpandRanges(parts->name);
    if (!expanded.ok()) return Wrong(item, expanded.status().message());
    names = *std::move(expanded);
  }
  std::vector<Host> hosts;
  for (std::string& name : names) {
    if (name.empty()) return Wrong(item, absl::StrCat("has no host; ", kExample));
    if (absl::StartsWith(name, "-") || !IsPlain(name, parts->is_ipv6 ? ".:%_-" : "._-")) {
      return Wrong(item, "has characters that are not valid in a host name");
    }
    host.name = std::move(name);
    hosts.push_back(host);
  }
  return hosts;
}

absl::StatusOr<std::vector<Host>> ParseHostList(absl::string_view text) {
  std::vector<Host> hosts;
  for (const absl::string_view item : SplitHostItems(text)) {
    auto more = ParseHosts(item);
    if (!more.ok()) return more.status();
    hosts.insert(hosts.end(), more->begin(), more->end());
    if (hosts.size() > kMaxHosts) {
      return absl::InvalidArgumentError(
          absl::StrCat("stands for more than ", kMaxHosts, " hosts; check its ranges"));
    }
  }
  return MergeRepeated(std::move(hosts));
}

absl::StatusOr<std::vector<Host>> MergeRepeated(std::vector<Host> hosts) {
  std::vector<Host> merged;
  std::map<std::string, std::size_t> places;
  for (Host& host : hosts) {
    const auto [place, is_new] = places.emplace(host.Text(), merged.size());
    if (is_new) {
      merged.push_back(std::move(host));
      continue;
    }
    Host& first = merged[place->second];
    first.workers = first.workers.value_or(1) + host.workers.value_or(1);
    if (*first.workers > kMaxWorkers) {
      return absl::FailedPreconditionError(
          absl::StrCat("gives ", first.Text(), " more than ", kMaxWorkers, " workers in total"));
    }
  }
  return merged;
}

absl::StatusOr<std::vector<std::string>> ExpandRanges(absl::string_view text) {
  std::vector<std::string> names = {""};
  while (!text.empty()) {
    const std::size_t open = text.find('[');
    const absl::string_view plain = text.substr(0, open);
    if (plain.find(']') != absl::string_view::npos) {
      return absl::InvalidArgumentError("has a ] without its [; write node[1-3]");
    }
    for (std::string& name : names) absl::StrAppend(&name, plain);
    if (open == absl::string_view::npos) break;
    const std::size_t close = text.find(']', open);
    if (close == absl::string_view::npos) {
      return absl::InvalidArgumentError("has a [ without its ]; write node[1-3]");
    }
    std::vector<std::string> numbers;
    for (const absl::string_view range :
         absl::StrSplit(text.substr(open + 1, close - open - 1), ',')) {
      const absl::Status status = AppendRange(range, numbers);
      if (!status.ok()) return status;
      if (numbers.size() > kMaxHosts) return TooMany();
    }
    auto product = Product(names, numbers);
    if (!product.ok()) return product.status();
    names = *std::move(product);
    text.remove_prefix(close + 1);
  }
  return names;
}

std::vector<absl::string_view> SplitHostItems(absl::string_view text) {
  std::vector<absl::string_view> items;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '[') ++depth;
    if (text[at] == ']') --depth;
    if (text[at] != ',' || depth > 0) continue;
    items.push_back(text.substr(begin, at - begin));
    begin = at + 1;
  }
  items.push_back(text.substr(begin));
  return items;
}

absl::StatusOr<std::vector<Host>> ParseHostfile(absl::string_view text, absl::string_view file) {
  std::vector<Host> hosts;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = line.substr(0, line.find('#'));
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r\v\f"), absl::SkipEmpty());
    if (words.empty()) continue;
    const auto more = ParseWords(words);
    if (!more.ok()) return At(file, number, more.status().message());
    hosts.insert(hosts.end(), more->begin(), more->end());
    if (hosts.size() > kMaxHosts) {
      return At(file, number, absl::StrCat("there are more than ", kMaxHosts, " hosts by now"));
    }
  }
  if (hosts.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, " has no host; write a name on each line"));
  }
  auto merged = MergeRepeated(std::move(hosts));
  if (!merged.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(file, " ", merged.status().message()));
  }
  return merged;
}

absl::StatusOr<std::vector<Host>> ReadHostfile(const std::string& file) {
  const base::UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    return base::SystemFailure(absl::StatusCode::kInvalidArgument, "read the hostfile", file);
  }
  std::string text;
  char piece[64 * 1024];
  while (true) {
    const ssize_t size = ::read(fd.get(), piece, sizeof piece);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      return base::SystemFailure(absl::StatusCode::kInvalidArgument, "read the hostfile", file);
    }
    if (size == 0) return ParseHostfile(text, file);
    text.append(piece, static_cast<std::size_t>(size));
    if (text.size() > kMaxBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("the hostfile ", file, " is larger than 16 MiB; is it the right file?"));
    }
  }
}

}  // namespace muster::launcher
