#include "launcher/machine/cpu_list.h"

#include <sched.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster::launcher {
namespace {

// Sixteen times what the largest kernel configuration allows; keeps a damaged file from filling the
// memory.
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
  // The fixed cpu_set_t ends at 1024 CPUs and the call then fails with EINVAL, so the set grows
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
  // A system call filter may refuse the call; then all that exist is the best guess.
  const int existing = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  for (int cpu = 0; cpu < existing; ++cpu) cpus.insert(cpus.end(), cpu);
  return cpus;
}

}  // namespace muster::launcher
