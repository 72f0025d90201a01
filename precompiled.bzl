"""Headers that are parsed once rather than by every unit that includes them."""

load("//:compiler.bzl", "COMPILER_ATTRS", "COMPILER_TOOLCHAINS", "find_compiler", "run_compiler")

def _precompiled_headers_impl(ctx):
    compiler = find_compiler(ctx)
    text = ctx.actions.declare_file(ctx.label.name + ".h")
    headers = [text]
    if not compiler.is_gcc:
        # The format of clang remembers where and when files were written, which differs from sandbox to sandbox. So
        # nothing is parsed ahead.
        ctx.actions.write(text, "")
    else:
        # g++ takes NAME.h.gch for NAME.h if the unit is compiled with the same flags, and else NAME.h itself.
        ctx.actions.symlink(output = text, target_file = ctx.file.header)
        parsed = ctx.actions.declare_file(text.basename + ".gch")
        run_compiler(
            ctx,
            compiler,
            "PrecompileHeaders",
            source = text,
            output = parsed,
            context = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]).compilation_context,
            copts = ctx.attr.copts,
            arguments = ["-x", "c++-header"],
        )
        headers.append(parsed)
    return [CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset(headers)))]

precompiled_headers = rule(
    doc = "NAME.h, which units include first: the file `header`, parsed ahead where the compiler is g++.",
    implementation = _precompiled_headers_impl,
    attrs = dict({
        "copts": attr.string_list(doc = "Those of the units that change what the compiler makes of headers."),
        "deps": attr.label_list(doc = "Whose defines and headers the units have as well.", providers = [CcInfo]),
        "header": attr.label(mandatory = True, allow_single_file = [".inc"]),
    }, **COMPILER_ATTRS),
    fragments = ["cpp"],
    toolchains = COMPILER_TOOLCHAINS,
)
