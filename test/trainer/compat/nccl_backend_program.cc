// Tests compat/torch_compat.h with a fake backend that connects GPUs but needs none. A separate
// program, which exits with 0 on success, as it needs LibTorch 2.6 or later.
// scripts/compat/trainer_cuda.sh builds and runs it.
#include <iostream>
#include <optional>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "trainer/compat/torch_compat.h"

namespace {

namespace compat = muster::trainer::compat;

class FakeBackend : public c10d::Backend {
 public:
  FakeBackend() : c10d::Backend(/*rank=*/0, /*size=*/2) {}

  const std::string getBackendName() const override { return "fake"; }
  void eagerConnectSingleDevice(at::Device device) override {
    connected_ = device;
    bound_when_connecting_ = getBoundDeviceId();
  }
  void shutdown() { ++shutdowns_; }

  std::optional<at::Device> connected_;
  std::optional<at::Device> bound_when_connecting_;
  int shutdowns_ = 0;
};

bool Check(bool right, const char* what) {
  if (!right) std::cerr << "nccl_backend_program: not so: " << what << "\n";
  return right;
}

}  // namespace

int main() {
  const at::Device device(at::kCUDA, 1);
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto backend = c10::make_intrusive<FakeBackend>();
  const compat::Group group =
      compat::WrapBackend(store, 0, 2, c10d::ProcessGroup::BackendType::NCCL, device, backend);
  bool right = Check(group->getBoundDeviceId() == device, "the group is bound to the device");
  // The device was bound after the backend had been set, and the backend never learned of it.
  right &= Check(backend->getBoundDeviceId() == device, "the backend is bound to the device");
  compat::Connect(*backend, *group, device);
  right &= Check(backend->connected_ == device, "the backend connects at once");
  right &= Check(backend->bound_when_connecting_ == device, "it is bound when it connects");
  compat::ShutDown(*backend);
  right &= Check(backend->shutdowns_ == 1, "the backend is shut down");
  return right ? 0 : 1;
}
