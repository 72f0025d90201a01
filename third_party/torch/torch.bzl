"""How a target that includes torch/torch.h is compiled."""

# Where the packaged LibTorch keeps <torch/torch.h>; every other header of its is under /usr/include. Bazel has no
# way to hand an absolute include path on to dependents, so each target that includes a LibTorch header says
# copts = TORCH_COPTS. As a system directory, because LibTorch's headers do not compile under -Wextra -Werror.
TORCH_COPTS = ["-isystem", "/usr/include/torch/csrc/api/include"]
