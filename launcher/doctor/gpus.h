// This machine's GPUs, their driver, and which of them CUDA_VISIBLE_DEVICES leaves.
#pragma once

#include <string>
#include <vector>

#include "launcher/doctor/report.h"
#include "launcher/machine/environment.h"
#include "launcher/machine/gpu_health.h"

namespace muster::launcher {

struct Gpus {
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
Gpus ReadGpus(const GpuPlaces& places = {});

void Judge(const Gpus& gpus, const Environment& environment, Report& report);

}  // namespace muster::launcher
