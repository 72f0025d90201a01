// Where a keeper's log goes: to its stderr, written by the keeper's only thread, which must not
// block there.
#pragma once

#include <string>

namespace muster::rendezvous {

// From now on what spdlog's default logger is given goes to `fd`, under that name. While nobody
// reads what is written (a terminal stopped by Ctrl-S, a pipe whose reader stands still), lines are
// lost, and their number is written before the next line: waiting would leave agents without an
// answer. There are few lines, so there is no buffer, and no thread for one.
void UseKeeperLog(const std::string& name, int fd);

}  // namespace muster::rendezvous
