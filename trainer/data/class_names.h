// The names of classes, and their numbers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace muster::trainer {

// `name` as a checkpoint and JSON can hold it: itself if it is UTF-8, else with "\xe9" for each
// byte that is not ASCII.
std::string ReadableName(const std::string& name);

// Appends those of `found` that are not among `classes` yet, in their order. The numbers of the
// others stay.
void AddClasses(const std::vector<std::string>& found, std::vector<std::string>& classes);

// The number of each class: its place in `classes`.
std::map<std::string, std::int64_t> NumbersOf(const std::vector<std::string>& classes);

// Why the first class behind the `known` ones, if there is one, cannot be measured: "the model does
// not know the class 'owl', only cat, dog". Empty if all are known.
std::string UnknownClass(const std::vector<std::string>& known,
                         const std::vector<std::string>& classes);

}  // namespace muster::trainer
