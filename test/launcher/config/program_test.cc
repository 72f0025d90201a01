#include "launcher/config/program.h"

#include <sys/stat.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

using test::TempDir;

using Words = std::vector<std::string>;

// A machine whose PATH is one directory with python3 and `tool` in it.
class ProgramTest : public testing::Test {
 protected:
  ProgramTest() {
    bin_.Write("python3", "", 0755);
    bin_.Write("tool", "", 0755);
    bin_.Write("notes", "", 0644);
  }

  absl::StatusOr<Program> Make(const Words& command, ProgramKind kind = ProgramKind::kScript) {
    return MakeProgram(command, kind, environment_);
  }
  std::string Bin(const std::string& name) { return bin_.path() + "/" + name; }

  TempDir bin_;
  TempDir dir_;
  Environment environment_ = {{"PATH", bin_.path()}};
};

TEST_F(ProgramTest, ScriptThatEndsInPyRunsUnderPythonWithItsArguments) {
  const std::string script = dir_.Write("train.py", "print(1)", 0755);
  const auto program = Make({script, "--r=16", "--", "-h"});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->name, script);
  EXPECT_EQ(program->argv, (Words{Bin("python3"), "-u", script, "--r=16", "--", "-h"}));
}

TEST_F(ProgramTest, FileThatIsNotExecutableRunsUnderPython) {
  const std::string script = dir_.Write("train", "print(1)", 0644);
  EXPECT_EQ(Make({script})->argv, (Words{Bin("python3"), "-u", script}));
}

TEST_F(ProgramTest, ExecutableThatNamesPythonInItsFirstLineRunsUnderPython) {
  const std::string script = dir_.Write("train", "#!/usr/bin/env python3\nprint(1)", 0755);
  EXPECT_EQ(Make({script})->argv, (Words{Bin("python3"), "-u", script}));
}

TEST_F(ProgramTest, ExecutableOfAnotherKindRunsAsItIs) {
  const std::string shell = dir_.Write("train.sh", "#!/bin/sh\n# python is not needed\n", 0755);
  EXPECT_EQ(Make({shell, "a"})->argv, (Words{shell, "a"}));
  const std::string binary = dir_.Write("train.bin",
                                        "\x7f"
                                        "ELF python",
                                        0755);
  EXPECT_EQ(Make({binary})->argv, (Words{binary}));
}

// "muster run job.sh" was a SyntaxError of Python's.
TEST_F(ProgramTest, ShellScriptThatIsNotExecutableRunsUnderItsInterpreter) {
  const std::string shell = dir_.Write("job.sh", "#!/bin/sh\nexec python train.py\n", 0644);
  EXPECT_EQ(Make({shell, "a"})->argv, (Words{"/bin/sh", shell, "a"}));
  const std::string words = dir_.Write("job", "#! /usr/bin/env -S sh  -e \r\n", 0644);
  EXPECT_EQ(Make({words, "a"})->argv, (Words{"/usr/bin/env", "-S sh  -e", words, "a"}));
  const std::string by_name = dir_.Write("run.sh", "exec python train.py\n", 0644);
  EXPECT_EQ(Make({by_name})->argv, (Words{"/bin/sh", by_name}));
  // With the run bit it could not be started: "Exec format error".
  const std::string executable = dir_.Write("start.sh", "exec python train.py\n", 0755);
  EXPECT_EQ(Make({executable})->argv, (Words{"/bin/sh", executable}));
  const std::string binary = dir_.Write("binary.sh",
                                        "\x7f"
                                        "ELF",
                                        0755);
  EXPECT_EQ(Make({binary})->argv, (Words{binary}));
  const std::string python = dir_.Write("train", "#!/usr/bin/env python3\n", 0644);
  EXPECT_EQ(Make({python})->argv, (Words{Bin("python3"), "-u", python}));
  // The name decides, as with torchrun.
  const std::string both = dir_.Write("train.py", "#!/bin/sh\n", 0644);
  EXPECT_EQ(Make({both})->argv, (Words{Bin("python3"), "-u", both}));
  const std::string lost = dir_.Write("lost.sh", "#!/no/such/shell\n", 0644);
  EXPECT_EQ(Make({lost}).status().message(), "cannot run '" + lost +
                                                 "': its first line asks for /no/such/shell, which "
                                                 "is not an executable here; correct that line");
}

TEST_F(ProgramTest, ScriptOfThisDirectoryIsNotLookedForInPathByItsInterpreter) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(dir_.path());
  dir_.Write("job.sh", "#!/bin/sh\n", 0644);
  EXPECT_EQ(Make({"job.sh"})->argv, (Words{"/bin/sh", "./job.sh"}));
  std::filesystem::current_path(before);
}

TEST_F(ProgramTest, CommandInPathRunsWithoutNoPython) {
  EXPECT_EQ(Make({"tool", "a"})->argv, (Words{Bin("tool"), "a"}));
}

TEST_F(ProgramTest, FileOfThisDirectoryComesBeforeACommandInPath) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(dir_.path());
  dir_.Write("tool", "#!/bin/sh\n", 0755);
  EXPECT_EQ(Make({"tool"})->argv, (Words{"./tool"}));
  EXPECT_EQ(Make({"tool"}, ProgramKind::kCommand)->argv, (Words{Bin("tool")}));
  std::filesystem::current_path(before);
}

TEST_F(ProgramTest, PythonExecChoosesThePython) {
  const std::string script = dir_.Write("train.py", "");
  environment_["PYTHON_EXEC"] = Bin("tool");
  EXPECT_EQ(Make({script})->argv, (Words{Bin("tool"), "-u", script}));
  environment_["PYTHON_EXEC"] = "tool";
  EXPECT_EQ(Make({script})->argv, (Words{"tool", "-u", script}));
  environment_["PYTHON_EXEC"] = "/no/python";
  EXPECT_EQ(Make({script}).status().message(),
            "cannot run '" + script + "': PYTHON_EXEC=/no/python is not an executable");
}

TEST_F(ProgramTest, PythonIsTakenWherePython3IsMissing) {
  const std::string script = dir_.Write("train.py", "");
  TempDir other;
  other.Write("python", "", 0755);
  environment_["PATH"] = "/nowhere:" + other.path();
  EXPECT_EQ(Make({script})->argv, (Words{other.path() + "/python", "-u", script}));
  environment_["PATH"] = "/nowhere";
  EXPECT_EQ(Make({script}).status().message(),
            "cannot run '" + script +
                "': it needs Python, and PATH has neither python3 nor python; set PYTHON_EXEC");
}

TEST_F(ProgramTest, ModuleRunsUnderPython) {
  EXPECT_EQ(Make({"pkg.train", "x"}, ProgramKind::kModule)->argv,
            (Words{Bin("python3"), "-u", "-m", "pkg.train", "x"}));
}

TEST_F(ProgramTest, NoPythonRunsTheCommandAsItIs) {
  EXPECT_EQ(Make({"tool", "x"}, ProgramKind::kCommand)->argv, (Words{Bin("tool"), "x"}));
  const std::string script = dir_.Write("train.py", "", 0755);
  EXPECT_EQ(Make({script}, ProgramKind::kCommand)->argv, (Words{script}));
}

TEST_F(ProgramTest, WhatCannotRunIsSaidInOneSentence) {
  const std::string plain = dir_.Write("data", "", 0644);
  const std::string& dir = dir_.path();
  const struct {
    std::string name;
    ProgramKind kind;
    std::string why;
  } cases[] = {
      {"x.py", ProgramKind::kScript, "no such file"},
      {"./x.py", ProgramKind::kScript, "no such file"},
      {"notes", ProgramKind::kScript, "no such file"},
      {dir, ProgramKind::kScript, "is a directory"},
      {"nothing", ProgramKind::kCommand, "no such command in PATH"},
      {"./nothing", ProgramKind::kCommand, "no such file"},
      {dir, ProgramKind::kCommand, "is a directory"},
      {plain, ProgramKind::kCommand,
       "it is not executable; chmod +x it, or drop --no-python for a script"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(Make({c.name}, c.kind).status().message(), "cannot run '" + c.name + "': " + c.why);
  }
}

TEST_F(ProgramTest, NoPythonSaysHowToRunAFileOfThisDirectory) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(dir_.path());
  dir_.Write("train", "", 0755);
  EXPECT_EQ(Make({"train"}, ProgramKind::kCommand).status().message(),
            "cannot run 'train': not in PATH; write ./train for the file in this directory");
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace muster::launcher
