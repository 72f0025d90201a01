#include "launcher/machine/cpus.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "worker/process/process_info.h"

namespace muster::launcher {
namespace {

// Sixteen times the largest kernel configuration; keeps a corrupt file from exhausting memory.
constexpr int kMaxCpu = 1 << 17;

}  // namespace

std::optional<CpuList> ParseCpuList(absl::string_view text) {
  CpuList cpus;
  text = absl::StripAsciiWhitespace(text);
  if (text.empty()) return cpus;
  for (const absl::string_view range : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(range, '-');
    int first = 0;
    int last = 0;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) ||
        !absl::SimpleAtoi(ends.back(), &last) || first < 0 || last < first || last > kMaxCpu) {
      return std::nullopt;
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.insert(cpus.end(), cpu);
  }
  return cpus;
}

std::string PrintCpuList(const CpuList& cpus) {
  std::string text;
  for (auto first = cpus.begin(); first != cpus.end();) {
    auto next = std::next(first);
    int last = *first;
    while (next != cpus.end() && *next == last + 1) last = *next++;
    absl::StrAppend(&text, text.empty() ? "" : ",", *first);
    if (last != *first) absl::StrAppend(&text, "-", last);
    first = next;
  }
  return text;
}

CpuList AllowedCpus() {
  CpuList cpus;
  // A fixed cpu_set_t holds 1024 CPUs, and with more the call fails with EINVAL: double the set
  // until it fits.
  for (int capacity = CPU_SETSIZE; capacity <= (1 << 20); capacity *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(capacity), [](cpu_set_t* allocated) { CPU_FREE(allocated); });
    const std::size_t size = CPU_ALLOC_SIZE(capacity);
    CPU_ZERO_S(size, set.get());
    if (sched_getaffinity(0, size, set.get()) != 0) continue;
    for (int cpu = 0; cpu < capacity; ++cpu) {
      if (CPU_ISSET_S(cpu, size, set.get())) cpus.insert(cpus.end(), cpu);
    }
    return cpus;
  }
  // A seccomp filter may refuse the call; all existing CPUs are then the best guess.
  const int existing = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  for (int cpu = 0; cpu < existing; ++cpu) cpus.insert(cpus.end(), cpu);
  return cpus;
}

std::optional<double> CpuQuotaIn(const std::string& directory) {
  // "150000 100000" in cpu.max means 1.5; version 1 has a file for each number.
  std::string text = worker::ReadSmallFile(absl::StrCat(directory, "/cpu.max"));
  if (text.empty()) {
    text = absl::StrCat(worker::ReadSmallFile(absl::StrCat(directory, "/cpu.cfs_quota_us")), " ",
                        worker::ReadSmallFile(absl::StrCat(directory, "/cpu.cfs_period_us")));
  }
  const std::vector<std::string> words =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  double quota = 0;
  double period = 0;
  // No limit is "max" in version 2 and -1 in version 1.
  if (words.size() != 2 || !absl::SimpleAtod(words[0], &quota) ||
      !absl::SimpleAtod(words[1], &period) || period <= 0 || quota <= 0) {
    return std::nullopt;
  }
  return quota / period;
}

std::optional<double> CpuQuota() {
  std::optional<double> least;
  for (const char* const hierarchy : {"", "cpu"}) {
    for (auto group = worker::FindOwnCgroup(hierarchy); group; group = group->Parent()) {
      const auto quota = CpuQuotaIn(group->directory);
      if (quota && (!least || *quota < *least)) least = quota;
    }
  }
  return least;
}

int CountCpus(int allowed, std::optional<double> quota) {
  // A fraction of a CPU still runs a worker.
  const double most = quota ? std::ceil(*quota) : allowed;
  return std::max(1, static_cast<int>(std::min<double>(allowed, most)));
}

}  // namespace muster::launcher
