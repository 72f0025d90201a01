// Starts real programs for tests, with an environment of the test's making.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace muster::trainer {

// A program that runs beside the test. If it is still there when this object goes, it is killed.
// Failures of the machinery itself are reported to GoogleTest as fatal failures of the process.
class Program {
 public:
  using Variables = std::map<std::string, std::string>;

  // Starts `arguments`[0] with the rest as its arguments, and `variables` on top of PATH alone as
  // its environment.
  Program(const std::vector<std::string>& arguments, const Variables& variables);
  ~Program();
  Program(Program&& other) noexcept;
  Program& operator=(Program&&) = delete;

  // Reads the standard output until `text` was seen in it; false when it ends or `deadline` passes
  // before that.
  bool WaitForOutput(const std::string& text, std::chrono::seconds deadline);

  // Waits until the program has ended and returns its exit code, 128 + signal if a signal ended it.
  // Kills it when `deadline` passes; the result is then 137.
  int Wait(std::chrono::seconds deadline);

  void Kill();

  // What was read of its standard output so far: all of it once Wait() has returned.
  const std::string& output() const { return output_; }
  // Its standard error, so far.
  std::string errors() const;

 private:
  pid_t pid_ = -1;
  int exit_fd_ = -1;    // a pidfd: readable when the program has ended
  int output_fd_ = -1;  // the read end of its standard output
  int errors_fd_ = -1;  // an unnamed file
  int exit_code_ = -1;  // once it has ended
  std::string output_;
};

// A TCP port that this object listens on, on every address.
class HeldPort {
 public:
  HeldPort();
  ~HeldPort();
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;

  int number() const { return number_; }

 private:
  int fd_ = -1;
  int number_ = 0;
};

// A TCP port that was free a moment ago.
int FreePort();

// The environment of rank `rank` of `world_size`, that meet at 127.0.0.1:`port`.
Program::Variables RankVariables(int rank, int world_size, int port);

// Starts `world_size` ranks of the program `arguments`, that meet at a free port, and waits for
// each. Returns them all, ended. Fails the test unless each exits with 0 within `deadline`.
std::vector<Program> RunRanks(const std::vector<std::string>& arguments, int world_size,
                              std::chrono::seconds deadline);

// The path of the muster-train under test.
std::string MusterTrain();

// Whether /usr/bin/python3 has torch (Debian's python3-torch).
bool PythonHasTorch();

// Where Debian's dataset-fashion-mnist puts it, and whether it is there.
inline constexpr char kFashionMnist[] = "/usr/share/datasets/fashion-mnist";
bool HasFashionMnist();

}  // namespace muster::trainer
