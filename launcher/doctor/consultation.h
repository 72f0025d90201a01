// What `muster doctor --hosts` knows of the hosts, and what they are to do next. A machine without
// I/O or clock: what hosts say goes in, and what is to be said to them comes out.
//
// First every host says what is wrong with it, or is given up. Then those that can be reached
// measure the ways between them, stage by stage (tournament.h): a stage is over when both ends of
// each of its encounters have said what they found, or were given up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "launcher/doctor/report.h"
#include "launcher/doctor/tournament.h"
#include "launcher/doctor/ways.h"

namespace muster::launcher {

class Consultation {
 public:
  // More hosts than this do not all meet: each meets this many others.
  static constexpr std::size_t kMaxRounds = 15;

  // `hosts` are their names. `make_key` makes the secret of one measurement, 16 characters.
  Consultation(std::vector<std::string> hosts, std::function<std::string()> make_key);

  // A host has written a line; it is not believed. Both return what is to be told to all hosts
  // now: a line of JSON, or nothing.
  std::optional<std::string> OnLine(int host, std::string_view line);
  // A host says nothing more: it was not reached, is lost or has ended. Only the first reason of
  // a host counts.
  std::optional<std::string> OnGone(int host, const std::string& reason);
  // Those that are waited for have had their time.
  std::optional<std::string> OnDeadline();

  // Nothing is waited for any more.
  bool is_over() const { return awaited_.empty(); }
  // How many stages there are, and which one is held; 0: hosts still say what is wrong with them.
  std::size_t stages() const { return stages_.size(); }
  std::size_t stage() const { return stage_; }

  // All of it: findings of hosts, alike ones as one, of the ways, and of differences.
  Report Result() const;
  const Ways& ways() const { return ways_; }

 private:
  struct Patient {
    std::optional<Report> report;
    std::string address;
    std::uint16_t port = 0;
    std::string gone;  // why nothing more comes from it
  };

  void TakeReport(Patient& patient, const base::Json& json);
  void TakeMeasurement(int host, const base::Json& json);
  std::optional<std::string> MaybeNext();
  std::string Announce();
  void AddHostsFindings(Report& result) const;

  const std::vector<std::string> hosts_;
  const std::function<std::string()> make_key_;
  std::vector<Patient> patients_;
  // Hosts from which something must come before it goes on.
  std::set<int> awaited_;
  bool measures_ = false;
  std::vector<Stage> stages_;
  std::size_t stage_ = 0;  // counted from 1; of the one that is held
  Ways ways_;
};

}  // namespace muster::launcher
