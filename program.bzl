"""A program of Muster, whose sources an optimized build compiles a room at a time."""

load("//:compiler.bzl", "COMPILER_ATTRS", "COMPILER_TOOLCHAINS", "find_compiler", "run_compiler")

_UnitsInfo = provider(
    doc = "What lies under a target.",
    fields = {
        "libraries": "depset of CcInfo: those of others, which are linked as they are.",
        "units": "depset of struct(label, source, copts, linkopts, context): Muster's own, and generated code.",
    },
)

def _units_impl(target, ctx):
    if ctx.rule.kind != "cc_library" or target.label.package.startswith("third_party/"):
        return [_UnitsInfo(libraries = depset([target[CcInfo]]), units = depset())]
    below = [dep[_UnitsInfo] for dep in ctx.rule.attr.deps]
    own = [
        struct(
            label = target.label,
            source = source,
            copts = tuple(ctx.rule.attr.copts),
            linkopts = tuple(ctx.rule.attr.linkopts),
            context = target[CcInfo].compilation_context,
        )
        for src in ctx.rule.attr.srcs
        for source in src.files.to_list()
    ]
    return [_UnitsInfo(
        libraries = depset(transitive = [b.libraries for b in below]),
        units = depset(own, transitive = [b.units for b in below]),
    )]

_units = aspect(
    implementation = _units_impl,
    attr_aspects = ["deps"],
    provides = [_UnitsInfo],
)

def _rooms_impl(ctx):
    compiler = find_compiler(ctx)
    under = ctx.attr.deps + ctx.attr.lends
    units = depset(transitive = [dep[_UnitsInfo].units for dep in under])
    libraries = depset(transitive = [dep[_UnitsInfo].libraries for dep in under])
    shared = {u.label: True for s in ctx.attr.shares for u in s[_UnitsInfo].units.to_list()}

    # A room is a folder; where its units are compiled with different flags, those of each kind make one.
    rooms = {}
    for unit in units.to_list():
        if unit.label not in shared:
            rooms.setdefault((unit.label.package, unit.copts), []).append(unit)

    objects = []
    for (package, copts), members in rooms.items():
        stem = "{}/{}_{}".format(ctx.label.name, package.replace("/", "_"), len(objects))
        room = ctx.actions.declare_file(stem + ".cc")
        paths = sorted([unit.source.path for unit in members])
        ctx.actions.write(room, "".join(["#include \"{}\"\n".format(path) for path in paths]))
        compiled = ctx.actions.declare_file(stem + ".o")
        included = CcInfo(compilation_context = cc_common.create_compilation_context(
            headers = depset([unit.source for unit in members]),
        ))
        run_compiler(
            ctx,
            compiler,
            "CompileRoom",
            source = room,
            output = compiled,
            context = cc_common.merge_cc_infos(
                cc_infos = [included] + [CcInfo(compilation_context = unit.context) for unit in members],
            ).compilation_context,
            # Whoever changes a unit sees its warnings; who installs the program can do nothing about them, and some
            # are only true of a file of its own.
            copts = list(copts) + ["-w"] + (["-O1"] if package in ctx.attr.cold else []),
        )
        objects.append(compiled)

    linking, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        feature_configuration = compiler.features,
        cc_toolchain = compiler.toolchain,
        name = ctx.label.name,
        compilation_outputs = cc_common.create_compilation_outputs(
            objects = None if compiler.is_pic else depset(objects),
            pic_objects = depset(objects) if compiler.is_pic else None,
        ),
        disallow_dynamic_library = True,
        linking_contexts = [library.linking_context for library in libraries.to_list()] +
                           [s[CcInfo].linking_context for s in ctx.attr.shares],
        user_link_flags = {option: True for unit in units.to_list() for option in unit.linkopts}.keys(),
    )
    headers = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]).compilation_context
    return [
        CcInfo(compilation_context = headers, linking_context = linking),
        _UnitsInfo(libraries = libraries, units = units),
    ]

_rooms = rule(
    doc = """The units that lie under `deps`, all those of one room (one folder) compiled as one.

Most of what a unit takes to compile is what it includes: a room takes little longer than its largest unit. The price
is that a change compiles the whole room again, so this is for builds that are made once.""",
    implementation = _rooms_impl,
    attrs = dict({
        "cold": attr.string_list(doc = "Rooms that little time is spent in: -O1 compiles them a quarter faster."),
        "deps": attr.label_list(providers = [CcInfo], aspects = [_units]),
        "lends": attr.label_list(
            doc = "What some of the programs that share these rooms need of them.",
            providers = [CcInfo],
            aspects = [_units],
        ),
        "shares": attr.label_list(
            doc = "Rooms of several programs: what they hold is linked, not compiled again.",
            providers = [CcInfo, _UnitsInfo],
        ),
    }, **COMPILER_ATTRS),
    fragments = ["cpp"],
    toolchains = COMPILER_TOOLCHAINS,
)

def rooms(name, deps, cold = [], lends = [], visibility = None):
    """What several programs have under them, compiled once a room at a time; they name it in `shares`.

    Args:
      name: of the rooms.
      deps: what lies in them, with all that it stands on. All of it is linked into each of the programs.
      cold: the rooms in which the programs spend little time.
      lends: what one of those who share them needs of them beside `deps`.
      visibility: which programs may share them.
    """
    _rooms(
        name = name,
        cold = cold,
        deps = deps,
        lends = lends,
        tags = ["manual"],
        visibility = visibility,
    )

def program(name, deps, cold = [], shares = [], **kwargs):
    """A cc_binary. With -c opt the units under it are compiled a room at a time: NAME_rooms.

    Args:
      name: of the program.
      deps: as cc_binary's.
      cold: the rooms in which the program spends little time.
      shares: rooms that lie under other programs, too.
      **kwargs: as cc_binary's.
    """
    _rooms(
        name = name + "_rooms",
        cold = cold,
        deps = deps,
        shares = shares,
        tags = ["manual"],
        visibility = ["//visibility:private"],
    )
    native.cc_binary(
        name = name,
        deps = select({
            "//:optimized": [":" + name + "_rooms"],
            "//conditions:default": deps,
        }),
        **kwargs
    )
