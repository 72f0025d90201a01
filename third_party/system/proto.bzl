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

def grpc_proto_library(name, messages = [], services = [], visibility = None):
    """A cc_library of the code that protoc makes of a folder's .proto files.

    Users include it by full path: "proto/store.pb.h", and "proto/store.grpc.pb.h" for its services.

    Args:
      name: name of the library.
      messages: .proto files of this package that declare no services.
      services: those that do.
      visibility: who may use the library.
    """
    stems = [file[:-len(".proto")] for file in messages + services]
    with_services = [file[:-len(".proto")] for file in services]
    hdrs = [stem + ".pb.h" for stem in stems] + [stem + ".grpc.pb.h" for stem in with_services]
    srcs = [stem + ".pb.cc" for stem in stems] + [stem + ".grpc.pb.cc" for stem in with_services]
    protoc = "/usr/bin/protoc -I. "
    commands = [protoc + "--cpp_out=$(GENDIR) $(SRCS)"]
    if services:
        commands.append(protoc + "--plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin --grpc_out=$(GENDIR) " +
                        " ".join(["$(location {})".format(file) for file in services]))

    native.genrule(
        name = name + "_generate",
        srcs = messages + services,
        outs = hdrs + srcs,
        cmd = " && ".join(commands),
        visibility = ["//visibility:private"],
    )
    native.cc_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        copts = GENERATED_COPTS,
        visibility = visibility,
        deps = ["//third_party/system:grpc"],
    )
