// Files that list hosts, as Open MPI and MPICH read them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/hosts/host_list.h"

namespace muster::launcher {

// A line each, in any mixture of
//   node0              a plain name, or a range, as in host_list.h
//   node0 slots=8      Open MPI's; max_slots= beside it is checked and ignored
//   node0:8            MPICH's
// with # before comments. Hosts that are named in several lines count as in host_list.h. An error's
// message is a sentence that begins with the place: "hosts.txt:3: slots=x is no number of workers
// ...". `file` is what it is called there.
absl::StatusOr<std::vector<Host>> ParseHostfile(absl::string_view text, absl::string_view file);

// Reads the file, which may wait for a disk, or a pipe ("/dev/stdin"), of 16 MiB at most.
absl::StatusOr<std::vector<Host>> ReadHostfile(const std::string& file);

}  // namespace muster::launcher
