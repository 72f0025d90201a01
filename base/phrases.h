// The phrases from which sentences for people are built, so that the same thing is said in the same
// words on status page, log and terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace muster::base {

// "1 node", "3 nodes".
std::string Count(std::size_t n, const char* noun);

// "600 s", "3.2 s", "250 ms"; whole seconds from ten on; a negative duration counts as zero.
std::string Seconds(std::chrono::nanoseconds duration);

// How a process ended, to follow its name: "exited with code 3", or, if `signal` is not 0, "was
// killed by SIGKILL".
std::string ExitPhrase(int exit_code, int signal);

// How many items ShortList names when more than one is left out.
inline constexpr std::size_t kShown = 8;

// The items with commas, cut after eight: "a, b, c, d, e, f, g, h and 56 more".
std::string ShortList(const std::vector<std::string>& items);
// The same for `count` items, of which the first nine, or all if there are fewer, are given.
std::string ShortList(const std::vector<std::string>& first, std::size_t count);

}  // namespace muster::base
