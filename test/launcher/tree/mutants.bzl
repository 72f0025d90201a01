"""Simulations of the launch tree with one mistake each in fan_out.cc."""

def fan_out_mutant(name, old, new):
    """A simulation in which `old`, which is in fan_out.cc once, reads `new`.

    The mutated copy is linked before the library that has the original, of which nothing is then taken.

    Args:
      name: of the binary, after "mutant_".
      old: the text that is replaced; on one line.
      new: what stands there instead.
    """
    native.genrule(
        name = "mutate_" + name,
        srcs = ["//launcher/tree:fan_out.cc"],
        outs = ["mutant_%s.cc" % name],
        cmd = "python3 $(location //test/rendezvous/cluster:mutate.py) $(SRCS) $@ '%s' '%s'" % (old, new),
        testonly = True,
        tools = ["//test/rendezvous/cluster:mutate.py"],
    )
    native.cc_binary(
        name = "mutant_" + name,
        srcs = ["mutant_%s.cc" % name],
        copts = [
            "-O1",
            "-Wno-misleading-indentation",
            "-Wno-unused-parameter",
            "-Wno-unused-variable",
        ],
        testonly = True,
        deps = [
            ":simulation_main_library",
            "//launcher/tree:fan_out",
        ],
    )
