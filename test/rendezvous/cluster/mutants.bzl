"""Simulations with one mistake each in the code that they simulate."""

_CLUSTER = [
    "//launcher/agent:agent_core",
    "//launcher/agent:agent_policy",
    "//rendezvous/client:attendance",
    "//rendezvous/client:lease_keeper",
    "//rendezvous/core:coordinator",
    "//rendezvous/core:ended_sessions",
    "//rendezvous/core:store_calls",
    "//rendezvous/wire:record_wire",
    "//worker/tree:dead_mans_switch",
    "//worker/group:group_life",
]

def mutant(name, file, old, new, simulation = ":cluster_main", mutable = _CLUSTER):
    """A simulation in which `old`, which is in `file` once, reads `new`.

    The mutated copy is linked before the library that has the original, of which nothing is then
    taken: so a mutant costs one compilation and one linking.

    Args:
      name: of the binary, after "mutant_".
      file: label of the source file.
      old: the text that is replaced; on one line.
      new: what stands there instead.
      simulation: the library that has its main function.
      mutable: what `file` includes.
    """
    native.genrule(
        name = "mutate_" + name,
        srcs = [file],
        outs = ["mutant_%s.cc" % name],
        cmd = "python3 $(location //test/rendezvous/cluster:mutate.py) $(SRCS) $@ '%s' '%s'" % (old, new),
        tags = ["manual"],
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
        tags = ["manual"],  # built and run by scripts/soak.sh: it takes some ten minutes
        testonly = True,
        deps = [simulation] + mutable,
    )
