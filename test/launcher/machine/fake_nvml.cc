// A fake NVML with three devices: the second cannot be opened, and the third is split into two MIG
// instances in slots 0 and 2. It reports memory errors, a pending repair and a hot chip. With
// FAKE_NVML_BROKEN set it fails to initialize, as NVML does if it does not match the driver; the
// device in FAKE_NVML_LOST is lost. It exits the process if it is used while not initialized.
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kMismatch = 18;
constexpr int kNotSupported = 3;
constexpr int kNoPermission = 4;
constexpr int kNotFound = 6;
constexpr int kLost = 15;

struct Device {
  const char* uuid;
  const char* bus_id;
  unsigned minor;
};
Device g_devices[] = {{"GPU-aaaa1111-0000", "00000000:3B:00.0", 1},
                      {"GPU-bbbb2222-0000", "00000000:5E:00.0", 2},
                      {"GPU-aaaa3333-0000", "00010000:86:00.0", 0}};
Device g_instances[] = {{"MIG-cccc4444-0000", "", 0}, {"MIG-cccc5555-0000", "", 0}};
bool g_initialized = false;

void CheckInitialized() {
  if (!g_initialized) std::abort();
}

}  // namespace

extern "C" {

struct PciInfo {
  char bus_id_legacy[16];
  unsigned numbers[5];
  char bus_id[32];
};

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

int nvmlInit_v2() {
  if (std::getenv("FAKE_NVML_BROKEN") != nullptr) return kMismatch;
  g_initialized = true;
  return 0;
}

int nvmlShutdown() {
  CheckInitialized();
  g_initialized = false;
  return 0;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  CheckInitialized();
  *count = 3;
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device** device) {
  CheckInitialized();
  *device = &g_devices[index];
  const char* const lost = std::getenv("FAKE_NVML_LOST");
  if (lost != nullptr && static_cast<unsigned>(std::atoi(lost)) == index) return kLost;
  return index == 1 ? kNoPermission : 0;
}

const char* nvmlErrorString(int result) {
  return result == kMismatch ? "Driver/library version mismatch"
         : result == kLost   ? "GPU is lost"
                             : "Unknown Error";
}

int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  CheckInitialized();
  std::strncpy(version, "550.54.15", length);
  return 0;
}

int nvmlDeviceGetName(Device*, char* name, unsigned length) {
  CheckInitialized();
  std::strncpy(name, "NVIDIA Fake", length);
  return 0;
}

int nvmlDeviceGetMemoryInfo(Device* device, Memory* memory) {
  CheckInitialized();
  const unsigned long long gibibyte = 1ull << 30;
  *memory = {80 * gibibyte, 77 * gibibyte, 3 * gibibyte};
  return device == &g_devices[0] ? 0 : kNotSupported;
}

int nvmlDeviceGetTemperature(Device* device, int sensor, unsigned* degrees) {
  CheckInitialized();
  *degrees = device == &g_devices[0] ? 41 : 92;
  return sensor == 0 ? 0 : kNotSupported;
}

// Only uncorrected ones (1) since the driver was loaded (0); all other counters are huge.
int nvmlDeviceGetTotalEccErrors(Device* device, int type, int counter, unsigned long long* errors) {
  CheckInitialized();
  *errors = type != 1 || counter != 0 ? 1000000 : device == &g_devices[0] ? 0 : 3;
  return 0;
}

int nvmlDeviceGetRemappedRows(Device* device, unsigned* corrected, unsigned* uncorrected,
                              unsigned* pending, unsigned* failed) {
  CheckInitialized();
  *corrected = 5;
  *uncorrected = *pending = device == &g_devices[0] ? 0 : 1;
  *failed = 0;
  return 0;
}

// The power cap, which is harmless, and the temperature.
int nvmlDeviceGetCurrentClocksThrottleReasons(Device* device, unsigned long long* reasons) {
  CheckInitialized();
  *reasons = device == &g_devices[0] ? 0x4 : 0x4 | 0x20;
  return 0;
}

int nvmlDeviceGetUUID(Device* device, char* uuid, unsigned length) {
  CheckInitialized();
  std::strncpy(uuid, device->uuid, length);
  return 0;
}

int nvmlDeviceGetPciInfo_v3(Device* device, PciInfo* info) {
  CheckInitialized();
  std::memset(info, 0, sizeof *info);
  std::strncpy(info->bus_id, device->bus_id, sizeof info->bus_id - 1);
  return 0;
}

int nvmlDeviceGetMinorNumber(Device* device, unsigned* minor) {
  CheckInitialized();
  *minor = device->minor;
  return 0;
}

int nvmlDeviceGetMigMode(Device* device, unsigned* current, unsigned* pending) {
  CheckInitialized();
  if (device != &g_devices[2]) return kNotSupported;
  *current = *pending = 1;
  return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(Device*, unsigned* count) {
  CheckInitialized();
  *count = 7;
  return 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(Device*, unsigned index, Device** instance) {
  CheckInitialized();
  if (index != 0 && index != 2) return kNotFound;
  *instance = &g_instances[index / 2];
  return 0;
}

}  // extern "C"
