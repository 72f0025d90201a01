#include "launcher/commands/gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster::launcher {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

GpuHealthReport TwoGpus() {
  return {.gpus = {{.gpu = {.index = 0, .uuid = "GPU-aaaa", .pci_bus_id = "0000:3b:00.0"},
                    .name = "NVIDIA H100 80GB HBM3",
                    .memory_used = 3ull << 29,
                    .memory_total = 80ull << 30,
                    .temperature = 41},
                   {.gpu = {.index = 1, .uuid = "GPU-bbbb", .pci_bus_id = "0000:5e:00.0"},
                    .uncorrected_errors = 1,
                    .slowdowns = {"slowed by its temperature"},
                    .xids = {{"0000:5e:00.0", 62, 0, ""}, {"0000:5e:00.0", 94, 17, "Contained"}}}},
          .driver = "550.54.15",
          .log_readable = true};
}

TEST(GpuTableTest, ALineForEach) {
  const std::string table = GpuTable(TwoGpus());
  EXPECT_THAT(table, StartsWith("GPU  UUID      BUS           NAME"));
  EXPECT_THAT(table,
              HasSubstr("\n0    GPU-aaaa  0000:3b:00.0  NVIDIA H100 80GB HBM3  1.5 of 80.0 GiB  "
                        "41 C  ok\n"));
  EXPECT_THAT(table, HasSubstr("1 uncorrected memory error; slowed by its temperature; 2 Xids "
                               "in the kernel's log, the last: Xid 94 (Contained)\n"));
}

TEST(GpusJsonTest, WhatIsNotKnownIsNull) {
  const auto json = nlohmann::json::parse(GpusJson(TwoGpus()));
  EXPECT_EQ(json["driver"], "550.54.15");
  EXPECT_TRUE(json["trouble"].is_null());
  EXPECT_EQ(json["gpus"][0]["memory_total_bytes"], 80ull << 30);
  EXPECT_TRUE(json["gpus"][0]["uncorrected_errors"].is_null());
  EXPECT_TRUE(json["gpus"][0]["faults"].empty());
  EXPECT_EQ(json["gpus"][1]["faults"][0], "1 uncorrected memory error");
  EXPECT_EQ(json["gpus"][1]["xids"][1]["xid"], 94);
  EXPECT_EQ(json["gpus"][1]["xids"][1]["pid"], 17);
  EXPECT_TRUE(json["gpus"][1]["xids"][0]["pid"].is_null());
  EXPECT_TRUE(json["gpus"][1]["xids"][0]["text"].is_null());
  EXPECT_TRUE(json["gpus"][1]["name"].is_null());
}

TEST(CheckGpusTest, ThoseThatWorkersMayUseHaveToBeFit) {
  const GpuHealthReport report = TwoGpus();
  const char* const unfit =
      "GPU 1 (0000:5e:00.0) is not fit: 1 uncorrected memory error; a GPU reset clears what can be "
      "repaired";
  EXPECT_EQ(CheckGpus(report, {}).message(), unfit);
  EXPECT_EQ(CheckGpus(report, {{"CUDA_VISIBLE_DEVICES", "GPU-bb"}}).message(), unfit);
  EXPECT_TRUE(CheckGpus(report, {{"CUDA_VISIBLE_DEVICES", "0"}}).ok());
  EXPECT_EQ(CheckGpus(report, {{"CUDA_VISIBLE_DEVICES", ""}}).message(),
            "CUDA_VISIBLE_DEVICES= leaves no GPU of this machine");
}

TEST(CheckGpusTest, AMachineThatDoesNotAnswerIsNotFit) {
  EXPECT_EQ(CheckGpus({}, {}).message(), "this machine has no NVIDIA GPU");
  GpuHealthReport report = TwoGpus();
  report.trouble = "device 2 of 3 does not answer: GPU is lost (NVML error 15)";
  EXPECT_EQ(CheckGpus(report, {{"CUDA_VISIBLE_DEVICES", "0"}}).message(), report.trouble);
}

}  // namespace
}  // namespace muster::launcher
