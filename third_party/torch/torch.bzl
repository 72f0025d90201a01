"""How a target that includes LibTorch's headers is compiled."""

TORCH_COPTS = [
    # Where the packaged LibTorch keeps <torch/torch.h>; every other header of its is under /usr/include. Bazel has no
    # way to hand an absolute include path on to dependents, so each target that includes a LibTorch header says
    # copts = TORCH_COPTS. As a system directory, because LibTorch's headers do not compile under -Wextra -Werror.
    "-isystem",
    "/usr/include/torch/csrc/api/include",
    # at::parallel_for, which is compiled here, is a plain loop without.
    "-fopenmp",
    # Each unit begins with the headers that are parsed already.
    "-include",
    "third_party/torch/precompiled.h",
]
