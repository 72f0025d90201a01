"""Simulations with one mistake each in the code that they simulate."""

load("//:room.bzl", "ROOM_COPTS", "room_without")

# A mistake may leave something unused, or a condition that is always true.
_COPTS = ROOM_COPTS + ["-O1", "-Wno-misleading-indentation", "-Wno-unused-parameter", "-Wno-unused-variable"]

# The sources with mistakes, by room.
_MUTABLE = {
    "//launcher/remote": ["fan_out.cc"],
    "//launcher/run": ["agent_core.cc"],
    "//rendezvous/client": ["agent_session.cc", "lease_keeper.cc"],
    "//rendezvous/core": ["coordinator.cc", "coordinator_join.cc", "daemon_core.cc", "session_table.cc"],
    "//rendezvous/core/job": ["job.cc", "job_news.cc", "roster.cc", "round.cc", "verdicts.cc"],
    "//rendezvous/etcd": ["election.cc", "etcd_journal.cc", "journal_keys.cc", "journal_mirror.cc", "leader.cc"],
    "//rendezvous/wire": ["record_wire.cc"],
}

_PACKAGE = "//test/rendezvous/cluster:"

def _rest_of(room):
    return "rest_of_" + room[2:].replace("/", "_")

def mutable_rooms():
    """For all mutants together: the rest of each room, without the sources with mistakes."""
    for room, sources in _MUTABLE.items():
        room_without(
            name = _rest_of(room),
            room = room,
            sources = sources,
            copts = _COPTS,
            tags = ["manual"],
            testonly = True,
            visibility = ["//test:__subpackages__"],
            deps = _MUTABLE.keys(),
        )

def mutants(mistakes, simulation, tags = None):
    """A simulation for each mistake: the binary mutant_NAME.

    The mutated copy of a source, and with it the others of its room that have mistakes, is linked with the rest of the
    room, before the library of the whole room, of which nothing is then taken. So a mutant costs one compilation and one
    linking.

    Args:
      mistakes: by name: the label of a source of a room; the text that is replaced, which is in it once; and what
        stands there instead.
      simulation: the library that has the main function.
      tags: of the binaries.
    """
    for name, (file, old, new) in mistakes.items():
        room, source = file.split(":")
        others = ["%s/%s" % (room[2:], other) for other in _MUTABLE[room] if other != source]
        native.genrule(
            name = "mutate_" + name,
            srcs = [file],
            outs = ["mutant_%s.cc" % name],
            cmd = "python3 $(location %smutate.py) $(SRCS) $@ '%s' '%s' %s" % (_PACKAGE, old, new, " ".join(others)),
            tags = ["manual"],
            testonly = True,
            tools = [_PACKAGE + "mutate.py"],
        )
        native.cc_binary(
            name = "mutant_" + name,
            srcs = ["mutant_%s.cc" % name],
            copts = _COPTS,
            tags = tags,
            testonly = True,
            deps = [_PACKAGE + _rest_of(room), simulation] + _MUTABLE.keys(),
        )

def mutants_test(name, simulation, mistakes, flags = [], loop_mistakes = [], **kwargs):
    """Runs simulations with mistakes, each of which a check must catch: see mutants_test.sh.

    Args:
      name: of the test.
      simulation: the binary without a mistake.
      mistakes: names that mutants() was given.
      flags: for all of them.
      loop_mistakes: mistakes that `simulation` makes when it is told to by --mutant=NAME.
      **kwargs: as sh_test's.
    """
    binaries = [":mutant_" + mistake for mistake in mistakes]
    native.sh_test(
        name = name,
        srcs = [_PACKAGE + "mutants_test.sh"],
        args = flags + ["$(location %s)" % binary for binary in [simulation] + binaries] +
               ["--mutant=" + mistake for mistake in loop_mistakes],
        data = [simulation] + binaries,
        **kwargs
    )
