// A flag of `muster run` and `muster launch`: a row of the flag table.
#pragma once

#include "absl/strings/string_view.h"
#include "launcher/flags/setters.h"

namespace muster::launcher {

struct Flag {
  enum class Kind {
    kSwitch,  // takes no value
    kValue,
    kIgnored,  // takes a value, which is checked and then ignored: a flag of torchrun's
    kAsk,      // a switch that asks for a text and has no environment variable
  };
  // Who has it.
  enum class Of { kBoth, kLaunch };

  // With dashes ("--rdzv-id"). The spelling with underscores and the variable PET_RDZV_ID follow
  // from it.
  absl::string_view name;
  // "-r", or several as "-n|-np", or empty.
  absl::string_view short_name = {};
  Kind kind = Kind::kValue;
  Of of = Of::kBoth;
  // False: only the command line sets it, as with torchrun.
  bool has_variable = true;
  // What it says is for the machine where it is typed, and not passed on to the hosts of a job.
  bool here_alone = false;
  // torchrun has no such flag: a prefix never means this one if it could mean one of torchrun's.
  bool ours = false;
  // In the help text: what the value is, what the flag does, and its default. For an ignored flag:
  // why it has no effect here.
  absl::string_view value_name = {};
  absl::string_view help;
  absl::string_view default_text = "off";
  // A variable that is looked at after PET_*, or empty.
  absl::string_view other_variable = {};
  // Puts the value ("1" or "0" for a switch) into place, or says what is wrong with it.
  Setter set;
  // Its heading in the help text: its group's (flag_table.h).
  absl::string_view group = {};
};

inline bool TakesValue(const Flag& flag) {
  return flag.kind == Flag::Kind::kValue || flag.kind == Flag::Kind::kIgnored;
}

}  // namespace muster::launcher
