// Starts real programs for tests, with an environment that the test defines.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace muster::trainer {

// A program that runs alongside the test. The destructor kills it if it is still running. When a
// system call fails, prints why and aborts the test.
class Program {
 public:
  using Variables = std::map<std::string, std::string>;

  // Starts `arguments`[0] with the rest as its arguments. Its environment is PATH and `variables`.
  Program(const std::vector<std::string>& arguments, const Variables& variables);
  ~Program();
  Program(Program&& other) noexcept;
  Program& operator=(Program&&) = delete;

  // Reads stdout until it contains `text`; false if it ends or `deadline` passes first.
  bool WaitForOutput(const std::string& text, std::chrono::seconds deadline);

  // Waits until the program has ended. Returns its exit code, or 128 + n if signal n ended it.
  // Kills it when `deadline` passes, so the result is then 137.
  int Wait(std::chrono::seconds deadline);

  void Signal(int signal);
  void Kill();

  // The stdout read so far; complete once Wait() has returned.
  const std::string& output() const { return output_; }
  // The stderr so far.
  std::string errors() const;

 private:
  pid_t pid_ = -1;
  int exit_fd_ = -1;    // a pidfd, readable once the program has ended
  int output_fd_ = -1;  // the read end of its stdout
  int errors_fd_ = -1;  // an unnamed file, its stderr
  int exit_code_ = -1;  // once it has ended
  std::string output_;
};

// A TCP port on which this object listens, on every address.
class HeldPort {
 public:
  HeldPort();
  ~HeldPort();
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;

  int number() const { return number_; }

  // Returns once a client has connected; false when `deadline` passes first. Never reads from it.
  bool WaitForCaller(std::chrono::seconds deadline) const;

 private:
  int fd_ = -1;
  int number_ = 0;
};

// A TCP port that was just free.
int FreePort();

// The environment of rank `rank` of `world_size` ranks that meet at 127.0.0.1:`port`.
Program::Variables RankVariables(int rank, int world_size, int port);

// Starts `world_size` ranks of the program `arguments`, which meet at a free port, and waits for
// each. Returns them after they have ended. Fails the test unless each exits with 0 within
// `deadline`.
std::vector<Program> RunRanks(const std::vector<std::string>& arguments, int world_size,
                              std::chrono::seconds deadline);

// The path of the muster-train under test.
std::string MusterTrain();

// Whether /usr/bin/python3 has torch (Debian's python3-torch).
bool PythonHasTorch();

// Where Debian's dataset-fashion-mnist installs its files, and whether they are there.
inline constexpr char kFashionMnist[] = "/usr/share/datasets/fashion-mnist";
bool HasFashionMnist();

}  // namespace muster::trainer
