#include "launcher/machine/nproc.h"

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

#include "base/text.h"
#include "launcher/machine/devices.h"
#include "worker/process/process_info.h"

namespace muster::launcher {
namespace {

// The rendezvous' limit for a node (rendezvous/core/session_table.cc).
constexpr int kMostWorkers = 65536;

std::string WhyNotCounted(const Accelerator& device) {
  std::string why = absl::StrCat("finds no NVIDIA GPU, but ", device.kind, " (", device.node,
                                 "), which are not counted yet; give their number");
  if (device.count > 0) absl::StrAppend(&why, ", such as --nproc-per-node=", device.count);
  if (!device.chosen_by.empty()) absl::StrAppend(&why, " for ", device.chosen_by);
  return absl::StrCat(why, ", or --nproc-per-node=cpu");
}

}  // namespace

Machine LookAtMachine() {
  return {.cpus = CountCpus(static_cast<int>(AllowedCpus().size()), CpuQuota()),
          .nvidia_devices = CountGpuNodes(),
          .list_gpus =
              [] {
                static const GpuList list = ListGpus();
                return list;
              },
          .hides_nodes = HasWslGpu("/dev"),
          .find_accelerator =
              [](const Environment& environment) { return FindAccelerator(environment); }};
}

GpuList GpusOf(const Machine& machine) {
  const bool has_any = machine.nvidia_devices > 0 || machine.hides_nodes;
  if (has_any && machine.list_gpus != nullptr) return machine.list_gpus();
  GpuList list;
  for (int index = 0; index < machine.nvidia_devices; ++index) {
    list.gpus.push_back({.index = index});
  }
  return list;
}

std::string GpuTroubleNote(const Machine& machine) {
  const GpuList list = GpusOf(machine);
  if (list.trouble.empty()) return "";
  return absl::StrCat("the NVIDIA driver does not report all GPUs: ", list.trouble,
                      "; muster finds ", base::Count(list.gpus.size(), "GPU"),
                      ", and workers may not be able to use ",
                      list.gpus.size() == 1 ? "it" : "them");
}

int CountGpus(const Machine& machine, const Environment& environment) {
  return static_cast<int>(VisibleDevices(environment, GpusOf(machine).gpus).size());
}

absl::StatusOr<int> ParseNproc(absl::string_view text, const Machine& machine,
                               const Environment& environment) {
  if (text == "cpu") return machine.cpus;
  if (text == "gpu" || text == "auto") {
    const int gpus = CountGpus(machine, environment);
    if (gpus > 0) return gpus;
    const bool hidden = environment.count("CUDA_VISIBLE_DEVICES") > 0;
    const auto other = hidden || machine.find_accelerator == nullptr
                           ? std::nullopt
                           : machine.find_accelerator(environment);
    if (other) return absl::InvalidArgumentError(WhyNotCounted(*other));
    if (text == "auto") return machine.cpus;
    return absl::InvalidArgumentError(
        hidden ? "finds no GPU because CUDA_VISIBLE_DEVICES leaves none (a device named twice "
                 "hides all); change it, or give a number or cpu"
               : "finds no NVIDIA GPU on this machine; give a number, cpu or auto");
  }
  int count = 0;
  if (!absl::SimpleAtoi(text, &count)) {
    return absl::InvalidArgumentError(
        "is not a number of workers; give a number from 1, or cpu, gpu or auto");
  }
  if (count < 1) {
    return absl::InvalidArgumentError(
        "starts no worker; give a number from 1, or cpu, gpu or auto");
  }
  if (count > kMostWorkers) {
    return absl::InvalidArgumentError(
        absl::StrCat("is more than a node may have; give a number up to ", kMostWorkers));
  }
  return count;
}

std::string NprocNote(absl::string_view text, const Machine& machine,
                      const Environment& environment) {
  if (text != "gpu" && text != "auto") return "";
  const int gpus = CountGpus(machine, environment);
  const std::string counts = absl::StrCat("--nproc-per-node=", text, " counts ");
  const bool hidden = environment.count("CUDA_VISIBLE_DEVICES") > 0;
  if (gpus == 0) {
    return absl::StrCat(counts, base::Count(static_cast<std::size_t>(machine.cpus), "CPU"), ", as ",
                        hidden ? "CUDA_VISIBLE_DEVICES leaves no GPU" : "this machine has no GPU");
  }
  const std::string devices = base::Count(static_cast<std::size_t>(gpus), "GPU");
  if (GpusOf(machine).gpus.empty()) {
    return absl::StrCat(counts, devices,
                        " in CUDA_VISIBLE_DEVICES=", GetOr(environment, "CUDA_VISIBLE_DEVICES", ""),
                        ", but this machine has no NVIDIA device; the workers may find none");
  }
  return text == "auto" ? absl::StrCat(counts, devices) : "";
}

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
