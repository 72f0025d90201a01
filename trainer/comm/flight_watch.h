// Asks operations whether they are done, where nobody tells.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace muster::trainer {

// How far an operation has come.
enum class FlightState { kUnderWay, kDone, kFailed };

// Looks after operations that go on while their rank does something else, such as those of a GPU,
// and whose end is known only to those who ask. A thread of its own asks, every 50 ms while there
// is anything to ask for; it is started with the first operation. Thread-safe.
class FlightWatch {
 public:
  FlightWatch() = default;
  // Waits for the thread, which may just be asking. What is still under way is forgotten.
  ~FlightWatch();
  FlightWatch(const FlightWatch&) = delete;
  FlightWatch& operator=(const FlightWatch&) = delete;

  // From now on `ask` is called now and then, from any thread, until it says kDone, after which
  // `on_done` is called once, or kFailed, or throws, which means the same. Both are kept until
  // then. Returns at once.
  void Add(std::function<FlightState()> ask, std::function<void()> on_done);

  // Asks for all operations now. Gives up after a second when another thread does not come back
  // from asking, so that whoever explains a hang does not hang itself.
  void AskAll();

 private:
  struct Watched {
    std::function<FlightState()> ask;
    std::function<void()> on_done;
  };
  void Run();

  std::timed_mutex asking_;       // held while operations are asked
  std::vector<Watched> watched_;  // by whoever holds it

  std::mutex mutex_;  // of what follows; never held for long
  std::condition_variable changed_;
  std::vector<Watched> added_;  // since they were asked last
  std::size_t under_way_ = 0;   // in both
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace muster::trainer
