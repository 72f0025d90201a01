"""Headers that are parsed once rather than by every unit that includes them."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _precompiled_headers_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    text = ctx.actions.declare_file(ctx.label.name + ".h")
    headers = [text]
    if "clang" in toolchain.compiler_executable:
        # Its format remembers where and when files were written, which differs from sandbox to sandbox. So nothing is
        # parsed ahead.
        ctx.actions.write(text, "")
    else:
        # g++ takes NAME.h.gch for NAME.h if the unit is compiled with the same flags, and else NAME.h itself.
        ctx.actions.symlink(output = text, target_file = ctx.file.header)
        headers.append(_parsed(ctx, toolchain, text))
    return [CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset(headers)))]

def _parsed(ctx, toolchain, text):
    """What the compiler makes of the header `text`, with the flags that Bazel gives to units of binaries."""
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    context = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]).compilation_context
    flags = cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = CPP_COMPILE_ACTION_NAME,
        variables = cc_common.create_compile_variables(
            feature_configuration = features,
            cc_toolchain = toolchain,
            user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts,
            quote_include_directories = context.quote_includes,
            system_include_directories = context.system_includes,
            preprocessor_defines = context.defines,
            use_pic = ctx.var["COMPILATION_MODE"] != "opt",
        ),
    )
    parsed = ctx.actions.declare_file(text.basename + ".gch")
    ctx.actions.run(
        mnemonic = "PrecompileHeaders",
        executable = cc_common.get_tool_for_action(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
        ),
        arguments = flags + ["-x", "c++-header", "-c", text.path, "-o", parsed.path],
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = cc_common.empty_variables(),
        ),
        inputs = depset([text], transitive = [context.headers, toolchain.all_files]),
        outputs = [parsed],
    )
    return parsed

precompiled_headers = rule(
    doc = "NAME.h, which units include first: the file `header`, parsed ahead where the compiler is g++.",
    implementation = _precompiled_headers_impl,
    attrs = {
        "copts": attr.string_list(doc = "Those of the units that change what the compiler makes of headers."),
        "deps": attr.label_list(doc = "Whose defines and headers the units have as well.", providers = [CcInfo]),
        "header": attr.label(mandatory = True, allow_single_file = [".inc"]),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
