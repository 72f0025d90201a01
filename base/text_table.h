// Rows of text as a table for people.
#pragma once

#include <string>
#include <vector>

namespace muster::base {

// One line for each row, in aligned columns two blanks apart; the last column is not padded. Every
// row has as many cells as the first. "-" stands for an empty cell, and '?' for each control
// character.
std::string TextTable(std::vector<std::vector<std::string>> rows);

}  // namespace muster::base
