// A fake NVML with three devices: the second cannot be opened, and the third is split into two MIG
// instances in slots 0 and 2. With FAKE_NVML_BROKEN set it refuses to work, as NVML does when it
// does not match the driver. It ends the process when it is used while not initialized.
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kUninitialized = 1;
constexpr int kNotSupported = 3;
constexpr int kNoPermission = 4;
constexpr int kNotFound = 6;

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

int nvmlInit_v2() {
  if (std::getenv("FAKE_NVML_BROKEN") != nullptr) return kUninitialized;
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
  return index == 1 ? kNoPermission : 0;
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
