#include "launcher/machine/nproc.h"
#include "launcher/machine/cpus.h"

#include <sched.h>

#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

constexpr Machine kFourGpus = {.cpus = 16, .nvidia_devices = 4};
constexpr Machine kNoGpu = {.cpus = 16, .nvidia_devices = 0};

TEST(NprocTest, NumberIsTheNumberOfWorkers) {
  EXPECT_EQ(*ParseNproc("3", kNoGpu, {}), 3);
}

TEST(NprocTest, WordsCountWhatTheMachineHas) {
  EXPECT_EQ(*ParseNproc("cpu", kFourGpus, {}), 16);
  EXPECT_EQ(*ParseNproc("gpu", kFourGpus, {}), 4);
  EXPECT_EQ(*ParseNproc("auto", kFourGpus, {}), 4);
  EXPECT_EQ(*ParseNproc("auto", kNoGpu, {}), 16);
}

TEST(NprocTest, CudaVisibleDevicesSaysWhichGpusThereAre) {
  EXPECT_EQ(*ParseNproc("gpu", kFourGpus, {{"CUDA_VISIBLE_DEVICES", "2, 3"}}), 2);
  EXPECT_EQ(*ParseNproc("gpu", kFourGpus, {{"CUDA_VISIBLE_DEVICES", "3,4,5"}}), 1);
  EXPECT_EQ(*ParseNproc("gpu", kNoGpu, {{"CUDA_VISIBLE_DEVICES", "GPU-8932f937,GPU-aa"}}), 2);
  EXPECT_EQ(*ParseNproc("auto", kFourGpus, {{"CUDA_VISIBLE_DEVICES", ""}}), 16);
  EXPECT_EQ(*ParseNproc("auto", kFourGpus, {{"CUDA_VISIBLE_DEVICES", "-1"}}), 16);
  EXPECT_EQ(*ParseNproc("auto", kFourGpus, {{"CUDA_VISIBLE_DEVICES", "1,-1,2"}}), 1);
}

int g_listed = 0;

TEST(NprocTest, DevicesAreListedOnlyWhereTheyMatter) {
  g_listed = 0;
  Machine machine = {.cpus = 16, .nvidia_devices = 2, .list_gpus = [] {
                       ++g_listed;
                       return GpuList{
                           .gpus = {{.index = 0, .uuid = "GPU-aa"}, {.index = 1, .uuid = "GPU-bb"}},
                           .trouble = ""};
                     }};
  EXPECT_EQ(*ParseNproc("2", machine, {}), 2);
  EXPECT_EQ(*ParseNproc("cpu", machine, {}), 16);
  EXPECT_EQ(g_listed, 0);
  EXPECT_EQ(*ParseNproc("gpu", machine, {{"CUDA_VISIBLE_DEVICES", "GPU-b,GPU-c"}}), 1);
  EXPECT_EQ(g_listed, 1);

  machine.nvidia_devices = 0;
  EXPECT_EQ(*ParseNproc("auto", machine, {}), 16);
  EXPECT_EQ(g_listed, 1) << "where there is no device node";
  machine.hides_nodes = true;
  EXPECT_EQ(*ParseNproc("auto", machine, {}), 2) << "of WSL2 only NVML tells";
}

// "192 workers on a node with four AMD GPUs, and no warning."
TEST(NprocTest, CpusAreNotTakenWhereThereIsAnotherAccelerator) {
  const Machine machine = {
      .cpus = 192, .find_accelerator = [](const Environment&) {
        return std::optional(Accelerator{.kind = "AMD GPUs",
                                         .node = "/dev/kfd",
                                         .count = 3,
                                         .chosen_by = "HIP_VISIBLE_DEVICES=0,1,2"});
      }};
  for (const char* const text : {"auto", "gpu"}) {
    EXPECT_EQ(ParseNproc(text, machine, {}).status().message(),
              "finds no NVIDIA GPU, but AMD GPUs (/dev/kfd), which are not counted yet; give their "
              "number, such as --nproc-per-node=3 for HIP_VISIBLE_DEVICES=0,1,2, or "
              "--nproc-per-node=cpu");
  }
  EXPECT_EQ(*ParseNproc("cpu", machine, {}), 192);
  EXPECT_EQ(*ParseNproc("auto", machine, {{"CUDA_VISIBLE_DEVICES", ""}}), 192) << "it is hidden";
}

TEST(NprocTest, AutoSaysWhatItHasCounted) {
  EXPECT_EQ(NprocNote("auto", kNoGpu, {}),
            "--nproc-per-node=auto counts 16 CPUs, as this machine has no GPU");
  EXPECT_EQ(NprocNote("auto", kFourGpus, {}), "--nproc-per-node=auto counts 4 GPUs");
  EXPECT_EQ(NprocNote("auto", kFourGpus, {{"CUDA_VISIBLE_DEVICES", "-1"}}),
            "--nproc-per-node=auto counts 16 CPUs, as CUDA_VISIBLE_DEVICES leaves no GPU");
  EXPECT_EQ(NprocNote("gpu", kFourGpus, {}), "");
  EXPECT_EQ(NprocNote("cpu", kFourGpus, {}), "");
  EXPECT_EQ(NprocNote("4", kFourGpus, {}), "");
}

TEST(NprocTest, ADriverThatDoesNotAnswerIsNoted) {
  EXPECT_EQ(GpuTroubleNote(kFourGpus), "");
  const Machine machine = {.cpus = 16, .nvidia_devices = 2, .list_gpus = [] {
                             return GpuList{
                                 .gpus = {{.index = 0}, {.index = 1}},
                                 .trouble = "it does not start: mismatch (NVML error 18)"};
                           }};
  EXPECT_EQ(GpuTroubleNote(machine),
            "the NVIDIA driver does not report all GPUs: it does not start: mismatch (NVML error "
            "18); muster finds 2 GPUs, and workers may not be able to use them");
}

TEST(NprocTest, GpuWithoutGpusSaysWhetherTheMachineOrTheVariableHasNone) {
  EXPECT_EQ(ParseNproc("gpu", kNoGpu, {}).status().message(),
            "finds no NVIDIA GPU on this machine; give a number, cpu or auto");
  EXPECT_EQ(ParseNproc("gpu", kFourGpus, {{"CUDA_VISIBLE_DEVICES", "0,0"}}).status().message(),
            "finds no GPU because CUDA_VISIBLE_DEVICES leaves none (a device named twice hides "
            "all); change it, or give a number or cpu");
}

TEST(NprocTest, WhatIsNoNumberOfWorkersIsRefused) {
  for (const char* text : {"", "0", "-1", "banana", "1.5", "GPU", "99999999999", "4 workers"}) {
    EXPECT_FALSE(ParseNproc(text, kFourGpus, {}).ok()) << text;
  }
}

TEST(NprocTest, CpusAreThoseThisProcessMayRunOn) {
  cpu_set_t original;
  ASSERT_EQ(sched_getaffinity(0, sizeof original, &original), 0);
  EXPECT_EQ(LookAtMachine().cpus, CountCpus(CPU_COUNT(&original), CpuQuota()));

  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(LookAtMachine().cpus, 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof original, &original), 0);
}

}  // namespace
}  // namespace muster::launcher
