// A rank that one node has and another asks for, and what each of the two is told about it.
#pragma once

#include <string>

namespace muster::rendezvous {

// Nodes that bring their ranks (JobSettings::exact_ranks) may bring the same one. All of these are
// sentences for people.
struct ContestedRank {
  std::string run_id;
  int rank = 0;
  // The hosts of the two.
  std::string holder;
  std::string newcomer;

  // For the newcomer, while it is not known whether the holder is still there.
  std::string Question() const;
  // For the newcomer: the holder is there.
  std::string Refusal() const;
  // For the holder, which continues: the newcomer was refused.
  std::string Warning() const;
  // For both, before the first round: nobody can know which of them is meant, so the job ends.
  std::string Clash() const;
};

}  // namespace muster::rendezvous
