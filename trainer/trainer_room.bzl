"""A room of the trainer."""

load("//:room.bzl", "room")
load("//third_party/torch:torch.bzl", "TORCH_COPTS")

def trainer_room(name, deps, torch = True, srcs = ["*.cc"], hdrs = ["*.h"], copts = [], exclude = [], **kwargs):
    """The sources and headers of a folder, for the trainer and its tests.

    Args:
      name: of the library.
      deps: as cc_library's. Those that another one brings along are left out.
      torch: whether its sources include LibTorch. One that does without runs under the sanitizers.
      srcs: patterns of sources.
      hdrs: patterns of headers.
      copts: as cc_library's.
      exclude: what the patterns match, but is no part of it.
      **kwargs: as cc_library's.
    """
    room(
        name = name,
        srcs = native.glob(srcs, exclude = exclude),
        hdrs = native.glob(hdrs, exclude = exclude),
        copts = (TORCH_COPTS if torch else []) + copts,
        visibility = [
            "//test:__subpackages__",
            "//trainer:__subpackages__",
        ],
        deps = deps + (["//third_party/torch"] if torch else []),
        **kwargs
    )
