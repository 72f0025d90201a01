"""A unit: one header, and the source file of the same name where there is one."""

def unit(name, **kwargs):
    """The cc_library of name.h and, if it is there, name.cc.

    Args:
      name: of the library and of its files.
      **kwargs: as cc_library's: deps, visibility, copts, testonly.
    """
    native.cc_library(
        name = name,
        srcs = native.glob([name + ".cc"]),
        hdrs = [name + ".h"],
        **kwargs
    )
