// Simulated GPUs, through an NVML of the test's own.
#include "launcher/doctor/machine.h"

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class DoctorGpusTest : public testing::Test {
 protected:
  DoctorGpusTest() {
    for (const char* const dir : {"dev", "gpus", "pci/0000:3b:00.0", "pci/0000:00:1f.0"}) {
      std::filesystem::create_directories(temp_.Path(dir));
    }
    temp_.Write("pci/0000:3b:00.0/vendor", "0x10de\n");
    temp_.Write("pci/0000:3b:00.0/class", "0x030200\n");
    temp_.Write("pci/0000:00:1f.0/vendor", "0x8086\n");
    temp_.Write("pci/0000:00:1f.0/class", "0x060100\n");
    temp_.Write("dev/nvidia0", "");
    temp_.Write("dev/nvidia-uvm", "");
    temp_.Write("kmsg", "");
  }
  ~DoctorGpusTest() override { unsetenv("FAKE_NVML_BROKEN"); }

  std::vector<std::string> Findings(const Environment& environment) const {
    Report report;
    Judge(ReadGpus(places_), environment, report);
    std::vector<std::string> lines;
    for (const Finding& one : report.findings) {
      lines.push_back(std::string(SeverityWord(one.severity)) + ": " + one.what);
    }
    return lines;
  }

  const test::TempDir temp_;
  GpuPlaces places_ = {.sources = {.library = "test/launcher/machine/libfake_nvml.so",
                                   .device_dir = temp_.Path("dev"),
                                   .driver_dir = temp_.Path("gpus")},
                       .kernel_log = temp_.Path("kmsg"),
                       .pci_dir = temp_.Path("pci"),
                       .cuda = "test/launcher/machine/libfake_nvml.so"};
};

TEST_F(DoctorGpusTest, ErrorsOfMemoryAndHeatAreTold) {
  const std::vector<std::string> lines = Findings({});
  EXPECT_THAT(lines, Contains("error: GPU 1 (NVIDIA Fake): 3 uncorrected memory errors."));
  EXPECT_THAT(lines, Contains("warning: GPU 1 (NVIDIA Fake): slowed by its temperature."));
  EXPECT_THAT(lines, Each(Not(HasSubstr("GPU 0"))));
}

TEST_F(DoctorGpusTest, ALibraryThatDoesNotFitTheDriver) {
  setenv("FAKE_NVML_BROKEN", "1", 1);
  EXPECT_THAT(Findings({}), Contains(HasSubstr("version mismatch (NVML error 18).")));
}

TEST_F(DoctorGpusTest, AGpuThatNoDriverHasTaken) {
  std::filesystem::remove(temp_.Path("dev/nvidia0"));
  EXPECT_THAT(Findings({}), Contains("error: there is 1 NVIDIA GPU on the PCI bus, and no device "
                                     "node (/dev/nvidia0)."));
}

TEST_F(DoctorGpusTest, PartsOfTheDriverThatAreMissing) {
  std::filesystem::remove(temp_.Path("dev/nvidia-uvm"));
  places_.cuda = "libnothing-of-that-name.so.1";
  const std::vector<std::string> lines = Findings({});
  EXPECT_THAT(lines, Contains("error: there is no /dev/nvidia-uvm."));
  EXPECT_THAT(lines, Contains("error: libcuda.so.1 cannot be loaded."));
}

TEST_F(DoctorGpusTest, VisibleDevicesThatNameNoDevice) {
  const auto about = [&](const std::string& value) {
    std::vector<std::string> lines = Findings({{"CUDA_VISIBLE_DEVICES", value}});
    std::erase_if(lines, [](const std::string& line) {
      return line.find("CUDA_VISIBLE_DEVICES") == std::string::npos;
    });
    return lines;
  };
  EXPECT_THAT(about("0,1"), IsEmpty());
  EXPECT_THAT(about("1,-1,0"), IsEmpty());
  EXPECT_THAT(about("0,9,1"), Contains("error: CUDA_VISIBLE_DEVICES=0,9,1 leaves 1 GPU of the 3 "
                                       "that it names (there are 2)."));
  EXPECT_THAT(about("0,0"), Contains(HasSubstr("leaves 0 GPUs of the 2")));
  EXPECT_THAT(about("gpu0"), Contains(HasSubstr("leaves 0 GPUs of the 1")));
  EXPECT_THAT(about(""), Contains("warning: CUDA_VISIBLE_DEVICES= hides all 2 GPUs."));
}

TEST_F(DoctorGpusTest, AMachineWithoutGpus) {
  std::filesystem::remove(temp_.Path("dev/nvidia0"));
  std::filesystem::remove_all(temp_.Path("pci"));
  EXPECT_THAT(Findings({}), IsEmpty());
  EXPECT_THAT(Findings({{"CUDA_VISIBLE_DEVICES", "0"}}),
              Contains("warning: CUDA_VISIBLE_DEVICES=0 names GPUs, and this machine shows none."));
}

}  // namespace
}  // namespace muster::launcher
