#include "launcher/cli/program.h"

#include <sys/stat.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
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
  for (const char* const line :
       {"#!/usr/bin/env python3\n", "#!/usr/bin/env -S python -u\r\n", "#! /usr/bin/python3.11\n",
        "#!/usr/bin/env -S PYTHONHASHSEED=0 python3 -O\n", "#!python3\n"}) {
    const std::string script = dir_.Write("train", absl::StrCat(line, "print(1)"), 0755);
    EXPECT_EQ(Make({script})->argv, (Words{Bin("python3"), "-u", script})) << line;
  }
}

// "All files of our Windows share are executable: exec format error."
TEST_F(ProgramTest, WhatNoFirstLineSaysOtherwiseOfIsPythons) {
  const std::string script = dir_.Write("train", "print(1)", 0755);
  EXPECT_EQ(Make({script})->argv, (Words{Bin("python3"), "-u", script}));
  const std::string zip = dir_.Write("app.pyz", "PK\x03\x04", 0755);
  EXPECT_EQ(Make({zip})->argv, (Words{Bin("python3"), "-u", zip}));
  const std::string with_line = dir_.Write("app", "#!/usr/bin/env python3\nPK\x03\x04", 0644);
  EXPECT_EQ(Make({with_line})->argv, (Words{Bin("python3"), "-u", with_line}));
  std::filesystem::create_symlink(script, dir_.Path("link"));
  EXPECT_EQ(Make({dir_.Path("link")})->argv, (Words{Bin("python3"), "-u", dir_.Path("link")}));
}

// "python3 app runs my folder, and so does torchrun; muster says that it is a directory."
TEST_F(ProgramTest, FolderWithMainIsPythons) {
  std::filesystem::create_directory(dir_.Path("app"));
  const std::string app = dir_.Path("app");
  EXPECT_EQ(
      Make({app}).status().message(),
      "cannot run '" + app + "': it is a directory without a __main__.py, which Python would run");
  dir_.Write("app/__main__.py", "");
  EXPECT_EQ(Make({app, "a"})->argv, (Words{Bin("python3"), "-u", app, "a"}));
  EXPECT_EQ(Make({app + "/"})->argv, (Words{Bin("python3"), "-u", app + "/"}));
  EXPECT_EQ(Make({app}, ProgramKind::kRunPath)->argv.back(), app);
}

// The pipe's first bytes would be missing in what Python reads.
TEST_F(ProgramTest, WhatIsNotARegularFileIsLeftForPythonToRead) {
  const std::string fifo = dir_.Path("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(Make({fifo})->argv, (Words{Bin("python3"), "-u", fifo})) << "and nobody waits for it";
  EXPECT_EQ(Make({"-"})->argv, (Words{Bin("python3"), "-u", "-"}));
}

// "ModuleNotFoundError: my tool is installed in a virtual environment that is not active."
TEST_F(ProgramTest, ProgramOfAnEnvironmentRunsUnderThatEnvironmentsPython) {
  std::filesystem::create_directories(dir_.Path("venv/bin"));
  const std::string python = dir_.Write("venv/bin/python", "", 0755);
  const std::string tool = dir_.Write("venv/bin/tool", "#!" + python + " -sE\n", 0755);
  EXPECT_EQ(Make({tool})->argv, (Words{Bin("python3"), "-u", tool})) << "no environment";
  dir_.Write("venv/pyvenv.cfg", "");
  const Words own = {python, "-sE", "-u", tool, "a"};
  EXPECT_EQ(Make({tool, "a"})->argv, own);
  environment_["PYTHON_EXEC"] = Bin("tool");
  EXPECT_EQ(Make({tool, "a"})->argv, own) << "no other Python has its packages";
  std::filesystem::create_symlink(tool, dir_.Path("linked"));
  EXPECT_EQ(Make({dir_.Path("linked")})->argv.front(), python);
  // A script that the user wrote may name a Python that is no longer the one in use.
  const std::string script = dir_.Write("train.py", "#!" + python + "\n", 0755);
  EXPECT_EQ(Make({script})->argv.front(), Bin("tool"));
  const std::string installed = dir_.Write("venv/bin/train.py", "#!" + python + "\n", 0755);
  EXPECT_EQ(Make({installed})->argv.front(), python);
  // Once it is active everything is as ever.
  dir_.Write("venv/bin/python3", "", 0755);
  environment_["PATH"] = dir_.Path("venv/bin");
  EXPECT_EQ(Make({tool})->argv.front(), Bin("tool"));
}

// "My laptop's environment is on the hosts, too, and the job ran under /usr/bin/python3."
TEST_F(ProgramTest, PythonOfTheCommandIsTakenWhereTheHostHasIt) {
  const std::string script = dir_.Write("train.py", "");
  environment_[kPythonOfCommand] = Bin("tool");
  EXPECT_EQ(Make({script})->argv, (Words{Bin("tool"), "-u", script}));
  EXPECT_EQ(Make({script})->note, "");
  environment_["PYTHON_EXEC"] = Bin("python3");
  EXPECT_EQ(Make({script})->argv.front(), Bin("python3")) << "which was exported by hand";
  environment_.erase("PYTHON_EXEC");

  environment_[kPythonOfCommand] = "/no/venv/bin/python3";
  EXPECT_EQ(Make({script})->argv, (Words{Bin("python3"), "-u", script}));
  EXPECT_EQ(Make({script})->note,
            "this host does not have /no/venv/bin/python3, the Python where the command was typed; "
            "its workers run under " +
                Bin("python3") + " (--export=PYTHON_EXEC=PATH names another)");
  environment_["PYTHON_EXEC"] = "/no/venv/bin/python3";
  EXPECT_EQ(Make({script})->argv.front(), Bin("python3"));
  EXPECT_EQ(PythonHere({{"PATH", bin_.path()}}), Bin("python3"));
  EXPECT_EQ(PythonHere({{"PATH", "/nowhere"}}), "");
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
  // The kernel looks for "/bin/sh\r".
  const std::string windows = dir_.Write("windows", "#!/bin/sh\r\nexit\r\n", 0755);
  EXPECT_EQ(Make({windows})->argv, (Words{"/bin/sh", windows}));
  // Whose path has Python's name in it.
  std::filesystem::create_directory(dir_.Path("python"));
  const std::string named = dir_.Write("named", "#!" + dir_.Write("python/sh", "", 0755), 0755);
  EXPECT_EQ(Make({named})->argv, (Words{named}));
  for (const mode_t mode : {0644, 0755}) {
    const std::string lost = dir_.Write("lost.sh", "#!/no/such/shell\n", mode);
    EXPECT_EQ(Make({lost}).status().message(),
              "cannot run '" + lost +
                  "': its first line asks for /no/such/shell, which is not an executable here; "
                  "correct that line");
  }
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
  const std::string binary = dir_.Write("binary",
                                        "\x7f"
                                        "ELF",
                                        0644);
  std::filesystem::create_symlink("/no/target", dir_.Path("dangling"));
  const std::string& dir = dir_.path();
  const struct {
    std::string name;
    ProgramKind kind;
    std::string why;
  } cases[] = {
      {"x.py", ProgramKind::kScript, "no such file"},
      {"./x.py", ProgramKind::kScript, "no such file"},
      {"notes", ProgramKind::kScript, "no such file, nor a command in PATH"},
      {dir_.Path("dangling"), ProgramKind::kScript,
       "it is a symbolic link to /no/target, which cannot be reached"},
      {plain + "/x", ProgramKind::kScript, "Not a directory"},
      {dir, ProgramKind::kScript,
       "it is a directory without a __main__.py, which Python would run"},
      {binary, ProgramKind::kScript, "it is not executable; chmod +x it"},
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
