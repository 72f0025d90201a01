"""Generated protocol code: Debian's protoc and grpc_cpp_plugin, run once for each .proto file."""

# Generated code is held to the generator's standard of warnings, not to ours.
GENERATED_COPTS = [
    "-Wno-unused-parameter",
    "-Wno-array-bounds",
    "-Wno-stringop-overflow",
    "-Wno-stringop-overread",
    "-Wno-maybe-uninitialized",
    "-Wno-deprecated-declarations",
]

def grpc_proto_library(name, src, imports = {}, with_grpc = True, visibility = None):
    """A cc_library of the code that protoc makes of one .proto file.

    Users include it by full path: "proto/store.pb.h", and "proto/store.grpc.pb.h" for its services.

    Args:
      name: name of the library.
      src: the .proto file, in this package.
      imports: the .proto files of this package that it imports, each with its library.
      with_grpc: whether the file declares services.
      visibility: who may use the library.
    """
    stem = src[:-len(".proto")]
    hdrs = [stem + ".pb.h"]
    srcs = [stem + ".pb.cc"]
    command = "/usr/bin/protoc -I. --cpp_out=$(GENDIR)"
    if with_grpc:
        hdrs.append(stem + ".grpc.pb.h")
        srcs.append(stem + ".grpc.pb.cc")
        command += " --plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin --grpc_out=$(GENDIR)"

    native.genrule(
        name = name + "_generate",
        srcs = [src] + imports.keys(),
        outs = hdrs + srcs,
        cmd = command + " $(location " + src + ")",
        visibility = ["//visibility:private"],
    )
    native.cc_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        copts = GENERATED_COPTS,
        visibility = visibility,
        deps = imports.values() + ["//third_party/system:grpc"],
    )
