"""Tests of the trainer that include LibTorch, and the programs that they start."""

load("//:room.bzl", "room_test")
load("//third_party/torch:torch.bzl", "TORCH_COPTS")

def torch_test(name, srcs, deps, **kwargs):
    """A room_test with LibTorch in the process, and Google Test's main().

    Args:
      name: of the test.
      srcs: included in this order.
      deps: as cc_test's. Those that another one brings along are left out.
      **kwargs: as cc_test's.
    """
    room_test(
        name = name,
        srcs = srcs,
        copts = TORCH_COPTS,
        deps = deps + [
            "//third_party/system:gtest_main",
            "//third_party/torch",
        ],
        **kwargs
    )

def torch_programs(names, deps, srcs = []):
    """For each of `names` a program of the source NAME.cc.

    Args:
      names: of the programs.
      deps: as cc_binary's. Those that another one brings along are left out.
      srcs: of each program, besides its own.
    """
    for name in names:
        native.cc_binary(
            name = name,
            testonly = True,
            srcs = [name + ".cc"] + srcs,
            copts = TORCH_COPTS,
            visibility = ["//test/trainer:__subpackages__"],
            deps = deps + ["//third_party/torch"],
        )
