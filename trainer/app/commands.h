// The commands of muster-train besides training, compare (compare.h) and generate (generate.h).
#pragma once

#include <istream>
#include <ostream>

#include "absl/status/statusor.h"

namespace muster::trainer {

struct Registry;  // trainer/models/registry.h

// muster-train predict: a trained model's prediction for each image.

// Writes a line of JSON for each image or row, in the order of the data, to --output or else to
// `out`: {"index":0,"label":9,"top":[{"class":9,"probability":0.98},...]}, the likeliest class
// first; "label" is null if the data has none, or one unknown to the model. If classes have names,
// "label_name" is added, and "name" next to each "class". The file is written atomically. `argv`
// begins with "predict"; all flags but its own are those of muster-train. Returns the exit code.
// kInvalidArgument for a mistake in the flags, and when checkpoint or data are missing, damaged, or
// do not fit together; kUnavailable when the lines cannot be written. Throws what LibTorch throws.
absl::StatusOr<int> RunPredict(int argc, const char* const* argv, const Registry& registry,
                               std::ostream& out);

// muster-train eval: measures a trained model on the test samples.

// Measures the model of a checkpoint as training does after an epoch, in a single process or as one
// of the ranks of a launcher; rank 0 writes the numbers to `out`, as lines or as a JSON object.
// `argv` begins with "eval"; all flags but its own are those of muster-train. Only rank 0 reads the
// checkpoint. Returns the exit code. kInvalidArgument for a mistake in the flags, and if checkpoint
// or data are missing, damaged, or do not fit together; kUnavailable if a rank is lost.
absl::StatusOr<int> RunEval(int argc, const char* const* argv, const Registry& registry,
                            std::ostream& out);

// muster-train consolidate: converts a checkpoint between its two forms.

// Converts a checkpoint in shards to one file, as --checkpoint-format whole would have written it,
// or with --shards a checkpoint in either form to a directory of shards. `argv` begins with
// "consolidate". Reports its progress to `out`. Needs memory for the whole checkpoint. Returns the
// exit code. kInvalidArgument for a mistake in the flags, if the checkpoint is missing or damaged,
// and if the output directory exists and is not empty; kUnavailable if reading or writing fails.
absl::StatusOr<int> RunConsolidate(int argc, const char* const* argv, const Registry& registry,
                                   std::ostream& out);

// muster-train tokenize: encodes text into a file of tokens.

// Encodes files, or `in` for "-", into one file of tokens; memory does not depend on their size.
// `argv` begins with "tokenize". Prints progress to `out`, as one changing line if that is a
// `terminal`, and at the end what was written. Returns the exit code. kInvalidArgument for a
// mistake in the flags or a file that cannot be read or created, kUnavailable when writing fails;
// then the output path is untouched.
absl::StatusOr<int> Tokenize(int argc, const char* const* argv, std::istream& in, std::ostream& out,
                             bool terminal);

// muster-train schedule: shows how the ranks of a pipeline take turns.

// Simulates a schedule of pipeline parallelism with the times given by flags, and prints to `out`
// what each rank does when, in lines of at most `width` columns, and its cost compared with theory.
// With --svg it also draws this into a file. `argv` begins with "schedule". Starts no ranks.
// Returns the exit code. kInvalidArgument for a mistake in the flags, or if the file cannot be
// created; kUnavailable if writing it fails.
absl::StatusOr<int> RunSchedule(int argc, const char* const* argv, int width, std::ostream& out);

}  // namespace muster::trainer
