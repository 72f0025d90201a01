// The flags that say what each worker runs.
#include "launcher/config/words.h"
#include "launcher/flags/flag_table.h"
#include "launcher/flags/readers.h"

namespace muster::launcher {
namespace {

// How the script of `muster launch` is told its local rank.
constexpr Word<const char*> kLocalRankFlags[] = {{"dash", "--local-rank"},
                                                 {"underscore", "--local_rank"}};

// torchrun's; the values mean nothing here.
constexpr Word<int> kStartMethods[] = {{"spawn", 0}, {"fork", 0}, {"forkserver", 0}};

constexpr Flag kProgramFlags[] = {
    {.name = "--module",
     .short_name = "-m",
     .kind = Flag::Kind::kSwitch,
     .help = "The script is a Python module, as with `python -m`.",
     .set = Store<ReadSwitch, &RunFlags::module>},
    {.name = "--no-python",
     .kind = Flag::Kind::kSwitch,
     .help = "The script is a command; run it as it is.",
     .default_text = "off; not needed for an executable or a shell script",
     .set = Store<ReadSwitch, &RunFlags::no_python>},
    {.name = "--run-path",
     .kind = Flag::Kind::kSwitch,
     .help = "Run the script with runpy.run_path(). Its exceptions go to its error file.",
     .set = Store<ReadSwitch, &RunFlags::run_path>},
    {.name = "--start-method",
     .kind = Flag::Kind::kIgnored,
     .value_name = "spawn|fork|forkserver",
     .help = "Every worker is a process of its own.",
     .set = Check<ReadWord<kStartMethods>>},
    {.name = "--use-env",
     .kind = Flag::Kind::kSwitch,
     .of = Flag::Of::kLaunch,
     .help = "Do not pass --local-rank to the script; it reads LOCAL_RANK.",
     .set = Store<ReadSwitch, &RunFlags::use_env>},
    {.name = "--local-rank-style",
     .of = Flag::Of::kLaunch,
     .ours = true,
     .value_name = "dash|underscore",
     .help = "Whether the script gets --local-rank=N or --local_rank=N.",
     .default_text = "dash",
     .set = Store<ReadWord<kLocalRankFlags>, &RunFlags::local_rank_flag>},
};

}  // namespace

FlagGroup ProgramFlags() {
  return {"What each worker runs", kProgramFlags};
}

}  // namespace muster::launcher
