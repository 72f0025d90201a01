// Everything that a machine can check about itself.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "launcher/doctor/report.h"
#include "launcher/machine/environment.h"
#include "launcher/machine/gpu_health.h"

namespace muster::launcher {

struct Examination {
  // The value of --log-dir; empty: a directory in TMPDIR.
  std::string log_dir;
  std::vector<std::string> checkpoints;
  // The job spans several machines.
  bool has_peers = false;
};

// Checks this machine; call it on the main thread. May wait for DNS, disks, the GPU driver and
// Python, usually for less than a second in all.
Report ExamineMachine(const Examination& examination, const Environment& environment);

// This machine's clock, as far as the machine itself knows.

struct ClockFacts {
  std::chrono::system_clock::time_point now;
  // The kernel reports that something, such as chrony or ntpd, disciplines the clock.
  bool is_synchronized = false;
  // The clock source: "tsc", "kvm-clock", "hpet"; empty if unknown.
  std::string source;
};

ClockFacts ReadClock();

void Judge(const ClockFacts& clock, Report& report);

// What should be equal on all hosts of a job: versions of this program, the kernel, Python,
// PyTorch, NCCL.

struct Versions {
  // By name: "muster", "kernel", "system", "glibc"; and, if Python has them, "Python", "PyTorch",
  // "NCCL". Missing ones are left out.
  std::map<std::string, std::string> found;
  // Why Muster cannot run on this kernel; empty if it can.
  std::string kernel_trouble;
};

// Asks the Python that would run scripts, for at most `limit`, without importing PyTorch. Call it
// on the main thread.
Versions ReadVersions(const Environment& environment,
                      std::chrono::milliseconds limit = std::chrono::seconds(10));

void Judge(const Versions& versions, Report& report);

// This machine's GPUs, their driver, and which of them CUDA_VISIBLE_DEVICES leaves.

struct GpuFacts {
  GpuHealthReport health;
  // NVIDIA display controllers on the PCI bus, with or without a driver.
  int on_bus = 0;
  int device_nodes = 0;   // /dev/nvidia0, ...
  bool has_uvm = false;   // /dev/nvidia-uvm
  bool has_cuda = false;  // libcuda.so.1 can be loaded
};

struct GpuPlaces {
  GpuSources sources;
  std::string kernel_log = "/dev/kmsg";
  std::string pci_dir = "/sys/bus/pci/devices";
  std::string cuda = "libcuda.so.1";
};

// As slow as ReadGpuHealth().
GpuFacts ReadGpus(const GpuPlaces& places = {});

void Judge(const GpuFacts& gpus, const Environment& environment, Report& report);

// The resource limits that processes started from here inherit (setrlimit).

struct Limits {
  rlimit open_files = {RLIM_INFINITY, RLIM_INFINITY};
  rlimit processes = {RLIM_INFINITY, RLIM_INFINITY};
  rlimit locked_memory = {RLIM_INFINITY, RLIM_INFINITY};  // bytes
  rlimit file_size = {RLIM_INFINITY, RLIM_INFINITY};      // bytes
  rlimit address_space = {RLIM_INFINITY, RLIM_INFINITY};  // bytes
  // Root is exempt from the limits on processes and on locked memory.
  bool is_root = false;
  // There is RDMA hardware.
  bool has_rdma = false;
};

Limits ReadLimits();

void Judge(const Limits& limits, Report& report);

// The control groups of this process (version 2, or 1) and what they leave for workers.

struct ControlGroup {
  // "/user.slice/job-7"; empty if no version 2 hierarchy is visible.
  std::string name;
  // Workers can get a group of their own below it.
  bool is_delegated = false;
  // The limits are the lowest of this process's groups and their ancestors; nullopt: none.
  std::optional<std::uint64_t> memory_max;  // bytes
  // Bytes used in the group with that limit, without reclaimable page cache.
  std::optional<std::uint64_t> memory_used;
  std::optional<double> cpus;  // CPU seconds per second
  std::optional<std::uint64_t> pids_max;
  std::optional<std::uint64_t> pids_used;  // in the group with that limit
  // CPUs in the affinity mask.
  int allowed_cpus = 1;
};

// Also creates and removes a group below this process's, to see whether that works.
ControlGroup ReadControlGroup();

void Judge(const ControlGroup& group, Report& report);

// /dev/shm, through which NCCL and PyTorch's data loaders pass data on one machine.

struct SharedMemory {
  std::string path;
  std::string trouble;      // the system's error if it is unusable; empty if it is fine
  std::uint64_t total = 0;  // bytes
  std::uint64_t free = 0;
};

// Checks the file system by creating a file there, and removes it.
SharedMemory ReadSharedMemory(const std::string& path = "/dev/shm");

void Judge(const SharedMemory& facts, Report& report);

// Checks NCCL's and Gloo's environment variables against this machine's devices.

struct Interface {
  std::string name;
  bool is_up = false;
  bool is_loopback = false;
  bool has_address = false;  // an IP address
};

// A port of an InfiniBand or RoCE device.
struct RdmaPort {
  std::string device;  // "mlx5_0"
  int port = 1;
  std::string state;  // "4: ACTIVE", as the kernel writes it
};

struct Networks {
  std::vector<Interface> interfaces;
  std::vector<RdmaPort> rdma;
};

Networks ReadNetworks(const std::string& infiniband_dir = "/sys/class/infiniband");

// Whether NCCL_SOCKET_IFNAME or NCCL_IB_HCA selects `name`. "eth,ib" are prefixes, "=eth0" is an
// exact name, and "^docker" or "^=eth0" exclude; a port may follow a colon (NCCL,
// src/misc/utils.cc, parseStringList and matchIfList).
bool IsMeant(absl::string_view list, absl::string_view name, int port);

// `has_peers`: the job spans several machines.
void Judge(const Networks& networks, const Environment& environment, bool has_peers,
           Report& report);

// The libnccl.so.2 that the loader finds, to compare with the one that PyTorch ships.

struct NcclLibrary {
  // As the loader finds it for a program without a search path of its own; empty: not found.
  std::string path;
  // Where the path comes from: "LD_PRELOAD" or "LD_LIBRARY_PATH"; empty: the system.
  std::string by;
  // "2.20.5"; empty if unknown.
  std::string version;
  // A library in LD_PRELOAD that does not exist; empty: none.
  std::string missing_preload;
};

// Asks `ldconfig -p`, then looks into the directories, each for at most `limit`. Call it on the
// only thread of a process. Loads nothing: the version comes from the file's name, or from a string
// in its bytes.
NcclLibrary FindNcclLibrary(const Environment& environment,
                            std::chrono::milliseconds limit = std::chrono::seconds(5));

// "2.20.5" from "/usr/lib/libnccl.so.2.20.5" and "... NCCL version 2.20.5+cuda12.4 ..."; empty if
// there is none.
std::string NcclVersionIn(const std::string& text);

// `bundled`: the version of the package that PyTorch depends on; empty: none is installed.
void Judge(const NcclLibrary& library, const std::string& bundled, Report& report);

// The directories that a job writes to: logs, temporary files, checkpoints.

// The mount that a path is on, found without touching the path.

struct Mount {
  std::string point;  // "/mnt/data"; empty if unknown
  std::string type;   // "nfs4", "fuse.sshfs"
};

// `path` is absolute and free of links; `mountinfo` is the text of /proc/self/mountinfo.
Mount MountOf(const std::string& path, const std::string& mountinfo);

enum class DirectoryUse { kLogs, kTemporary, kCheckpoints };

struct Directory {
  DirectoryUse use = DirectoryUse::kLogs;
  std::string path;
  // The path itself or its nearest existing ancestor: where files would be created.
  std::string existing;
  // The system's error if the directory is not writable; empty if a small file was written.
  std::string trouble;
  std::chrono::milliseconds took{0};  // to write the small file to disk
  std::string type;                   // of its file system: "ext4", "nfs"
  bool is_network = false;            // other machines see the same files
  bool is_memory = false;
  std::uint64_t total = 0;  // bytes
  std::uint64_t free = 0;   // bytes available to this user
  std::uint64_t files_total = 0;
  std::uint64_t files_free = 0;

  // Set if the check timed out; the other fields then hold what was found until then.
  struct Hang {
    std::string doing;  // "look at /mnt/data", "write a page to /mnt/data/logs"
    std::chrono::milliseconds after{0};
    Mount mount;
  };
  std::optional<Hang> hang{};
};

// Writes a page to an unnamed file, and leaves nothing behind. Waits at most `limit` for the disk;
// a network file system whose server is down may block forever. For single-threaded processes
// (LookWithin).
Directory ReadDirectory(DirectoryUse use, const std::string& path,
                        std::chrono::milliseconds limit = std::chrono::seconds(10));

// `has_peers`: the job spans several machines.
void Judge(const Directory& directory, bool has_peers, Report& report);

}  // namespace muster::launcher
