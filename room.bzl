"""A room: the sources of a folder, compiled as one.

Most of what a source takes to compile is what it includes, and the sources of a folder include much the same: a room
takes little longer than its largest source. A name that is private to a source is private to its room, then.
"""

_UnitInfo = provider(
    doc = "What is compiled as one.",
    fields = {"sources": "Files, in order."},
)

def _unit_impl(ctx):
    all_sources = ctx.attr.rest_of[_UnitInfo].sources if ctx.attr.rest_of else list(ctx.files.srcs)
    sources = [source for source in all_sources if source.basename not in ctx.attr.without]
    unit = ctx.actions.declare_file(ctx.label.name + ".cc")

    # Their text, not their inclusion: what is included counts as a header of all that stands on the room, and would be
    # compiled again with each change of a source.
    ctx.actions.run_shell(
        inputs = sources,
        outputs = [unit],
        arguments = [unit.path] + [source.path for source in sources],
        command = 'out=$1; shift; for source; do echo "#line 1 \\"$source\\""; cat "$source"; done >"$out"',
    )
    result = [DefaultInfo(files = depset([unit])), _UnitInfo(sources = sources)]
    if ctx.attr.rest_of:
        # What takes the place of a source may include others that are left out.
        result.append(CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset(all_sources))))
    return result

_unit = rule(
    doc = "NAME.cc: the text of `srcs`, or of what `rest_of` has but for the sources `without`.",
    implementation = _unit_impl,
    attrs = {
        "rest_of": attr.label(providers = [_UnitInfo]),
        "srcs": attr.label_list(allow_files = [".cc"]),
        "without": attr.string_list(),
    },
)

# A source behind another one is taken for a header, whose types should not have members of types that are private to it.
ROOM_COPTS = ["-Wno-subobject-linkage"]

def _compiled_as_one(compile, name, srcs, copts, deps, testonly, kwargs):
    sources = [source for source in srcs if source.endswith(".cc")]
    if len(sources) > 1:
        unit = name + "_unit"
        _unit(
            name = unit,
            srcs = sources,
            tags = kwargs.get("tags"),
            testonly = testonly,
            visibility = ["//test:__subpackages__"],
        )
        srcs = [source for source in srcs if source not in sources] + [unit]
        copts = copts + ROOM_COPTS

    # Nothing is linked with a shared object of a room (.bazelrc: --dynamic_mode=off), which //... would make of each.
    compile(name = name, srcs = srcs, copts = copts, deps = deps, linkstatic = True, testonly = testonly, **kwargs)

def room(name, srcs, copts = [], deps = [], testonly = False, **kwargs):
    """A cc_library whose sources are compiled as one.

    Args:
      name: of the library.
      srcs: compiled in this order.
      copts: as cc_library's.
      deps: as cc_library's.
      testonly: as cc_library's.
      **kwargs: hdrs, visibility.
    """
    _compiled_as_one(native.cc_library, name, srcs, copts, deps, testonly, kwargs)

_GTEST_MAIN = "//third_party/system:gtest_main"

def room_test(name, srcs = None, copts = [], deps = [], **kwargs):
    """A cc_test whose sources are compiled as one, with GoogleTest's main function.

    Args:
      name: of the test.
      srcs: included in this order; None: the folder's *_test.cc.
      copts: as cc_test's.
      deps: as cc_test's. What they stand on need not be named.
      **kwargs: size, shard_count, data.
    """
    srcs = native.glob(["*_test.cc"]) if srcs == None else srcs
    deps = deps if _GTEST_MAIN in deps else deps + [_GTEST_MAIN]
    _compiled_as_one(native.cc_test, name, srcs, copts, deps, True, kwargs)

def room_without(name, room, sources, copts = [], deps = [], **kwargs):
    """The sources of a room but for some, in whose place a binary has others: all of it is linked.

    Args:
      name: of the library.
      room: label of its folder.
      sources: names of files, which a target that depends on this one may include.
      copts: as cc_library's, as are the others.
      deps: what the sources include.
      **kwargs: testonly, tags.
    """
    _unit(
        name = name + "_unit",
        rest_of = "{}:{}_unit".format(room, room.split("/")[-1]),
        without = sources,
        **kwargs
    )
    native.cc_library(
        name = name,
        srcs = [name + "_unit"],
        copts = copts + ROOM_COPTS,
        alwayslink = True,
        deps = deps + [name + "_unit"],
        **kwargs
    )
