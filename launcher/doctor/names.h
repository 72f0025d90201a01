// What this machine is called, and whether that leads to an address by which others reach it.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "launcher/doctor/report.h"

namespace muster::launcher {

struct Names {
  std::string host_name;
  // What the name resolves to, numeric; empty: it does not.
  std::vector<std::string> addresses;
  std::string trouble;  // why not
  std::chrono::milliseconds took{0};
  // Of the machine's interfaces, without loopback.
  std::vector<std::string> own;
  bool has_localhost = true;
};

// Asks the resolver, and so perhaps DNS: may wait for as long as that has patience.
Names ReadNames();

void Judge(const Names& names, Report& report);

// The numeric addresses of a host, each once; or why there are none, as the resolver says it.
struct Resolved {
  std::vector<std::string> addresses;
  std::string trouble;
};
Resolved Resolve(const std::string& host);

}  // namespace muster::launcher
