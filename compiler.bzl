"""The compiler and its flags, for rules that call it themselves."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# What a rule that compiles declares beside its own: rule(attrs = dict({...}, **COMPILER_ATTRS), ...).
COMPILER_ATTRS = {
    "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
}
COMPILER_TOOLCHAINS = ["@bazel_tools//tools/cpp:toolchain_type"]

def find_compiler(ctx):
    """The C++ compiler of this build.

    Args:
      ctx: of a rule that has COMPILER_ATTRS, COMPILER_TOOLCHAINS and the fragment "cpp".

    Returns:
      A struct: `toolchain` and `features` as cc_common takes them, `is_gcc`, and `is_pic`, which is how Bazel compiles
      units of binaries in this configuration.
    """
    toolchain = find_cpp_toolchain(ctx)
    return struct(
        features = cc_common.configure_features(
            ctx = ctx,
            cc_toolchain = toolchain,
            requested_features = ctx.features,
            unsupported_features = ctx.disabled_features,
        ),
        is_gcc = "clang" not in toolchain.compiler_executable,
        is_pic = ctx.var["COMPILATION_MODE"] != "opt",
        toolchain = toolchain,
    )

def run_compiler(ctx, compiler, mnemonic, source, output, context, copts = [], arguments = []):
    """Has `source` compiled to `output` with the flags that Bazel gives to units of binaries.

    Args:
      ctx: of the rule.
      compiler: of find_compiler.
      mnemonic: of the action.
      source: the file to compile.
      output: the file that comes out.
      context: the CcCompilationContext with what it includes.
      copts: more flags, as a unit's `copts`.
      arguments: what stands before "-c source -o output".
    """
    flags = cc_common.get_memory_inefficient_command_line(
        feature_configuration = compiler.features,
        action_name = CPP_COMPILE_ACTION_NAME,
        variables = cc_common.create_compile_variables(
            feature_configuration = compiler.features,
            cc_toolchain = compiler.toolchain,
            user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + copts,
            quote_include_directories = context.quote_includes,
            system_include_directories = context.system_includes,
            preprocessor_defines = context.defines,
            use_pic = compiler.is_pic,
        ),
    )
    ctx.actions.run(
        mnemonic = mnemonic,
        executable = cc_common.get_tool_for_action(
            feature_configuration = compiler.features,
            action_name = CPP_COMPILE_ACTION_NAME,
        ),
        arguments = flags + arguments + ["-c", source.path, "-o", output.path],
        env = cc_common.get_environment_variables(
            feature_configuration = compiler.features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = cc_common.empty_variables(),
        ),
        inputs = depset([source], transitive = [context.headers, compiler.toolchain.all_files]),
        outputs = [output],
    )
