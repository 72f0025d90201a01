#include "rendezvous/fronts/complaints.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

constexpr std::chrono::minutes kOnceIn(1);
constexpr std::size_t kMostAddresses = 1024;
constexpr char kOthers[] = "many addresses";

}  // namespace

void Complaints::Add(const std::string& address, const std::string& what, TimePoint now) {
  ++total_;
  auto line = lines_.find(address);
  // Once in a while: a flood must not cost more than it does.
  if (line == lines_.end() && lines_.size() >= kMostAddresses && now - swept_ >= kOnceIn) {
    swept_ = now;
    std::erase_if(lines_, [now](const auto& each) { return now - each.second.said >= kOnceIn; });
  }
  if (line == lines_.end()) {
    const std::string& name = lines_.size() < kMostAddresses ? address : kOthers;
    line = lines_.try_emplace(name, Line{now - kOnceIn}).first;
  }
  if (now - line->second.said < kOnceIn) {
    ++line->second.unsaid;
    return;
  }
  const std::uint64_t unsaid = std::exchange(line->second, Line{now}).unsaid;
  log_(absl::StrCat(line->first, " ", what,
                    unsaid == 0 ? ""
                                : absl::StrCat("; ", unsaid,
                                               " more refusals since its last "
                                               "line")));
}

}  // namespace muster::rendezvous
