#include "test/rendezvous/simulation/trace.h"

#include <algorithm>
#include <ostream>
#include <utility>

namespace muster::rendezvous {

void Trace::Add(std::string line) {
  line += '\n';
  for (const char c : line) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 1099511628211u;
  if (copy_ != nullptr) *copy_ << line;
  kept_[lines_++ % kKept] = std::move(line);
}

std::string Trace::Tail() const {
  std::string tail;
  for (std::size_t i = lines_ - std::min(lines_, kKept); i < lines_; ++i) tail += kept_[i % kKept];
  return tail;
}

}  // namespace muster::rendezvous
