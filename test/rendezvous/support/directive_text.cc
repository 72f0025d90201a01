#include "test/rendezvous/support/directive_text.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "rendezvous/core/values/phrases.h"

namespace muster::rendezvous {
namespace {

struct Text {
  std::string operator()(const Welcome& welcome) const {
    return absl::StrCat("welcome: beat ", base::Seconds(welcome.keep_alive), ", lease ",
                        base::Seconds(welcome.lease));
  }
  std::string operator()(const Waiting& waiting) const {
    return absl::StrCat(waiting.spare ? "spare: " : "waiting: ", waiting.sentence);
  }
  std::string operator()(const Assignment& a) const {
    std::string text =
        absl::StrCat("start round ", a.round, ": group ", a.group_rank, "/", a.group_world_size);
    absl::StrAppend(&text, ", base rank ", a.base_rank, "/", a.world_size, ", in role ",
                    a.role_base_rank, "/", a.role_world_size);
    absl::StrAppend(&text, ", master ", a.master_addr, ":", a.master_port);
    if (a.agent_store) absl::StrAppend(&text, " served by its agent");
    if (a.store_tunnel) absl::StrAppend(&text, " through a tunnel");
    if (!a.member_addresses.empty() && a.agent_store) {
      absl::StrAppend(&text, " to ", absl::StrJoin(a.member_addresses, " "));
    }
    absl::StrAppend(&text, ", restart ", a.restart_count, "/", a.max_restarts, " (", a.rank_reason,
                    ")");
    return text;
  }
  std::string operator()(const Stop& stop) const {
    return absl::StrCat("stop round ", stop.round, ": ", stop.reason);
  }
  std::string operator()(const Fenced& fenced) const { return fenced.sentence; }
  std::string operator()(const Verdict& verdict) const {
    std::string text = absl::StrCat("verdict: ", verdict.sentence);
    if (verdict.root_cause)
      absl::StrAppend(&text, " [root cause: rank ", verdict.root_cause->rank, "]");
    return text;
  }
  std::string operator()(const Refused& refused) const {
    return absl::StrCat("refused: ", refused.sentence);
  }
  std::string operator()(const Notice& notice) const {
    const char* const about = notice.kind == Notice::Kind::kStraggler       ? " of a straggler"
                              : notice.kind == Notice::Kind::kStragglerOver ? " of one no longer"
                                                                            : "";
    return absl::StrCat("notice", about, notice.rank ? absl::StrCat(", rank ", *notice.rank) : "",
                        ": ", notice.sentence);
  }
  std::string operator()(const Heard& heard) const { return absl::StrCat("heard ", heard.number); }
  std::string operator()(const Evicted& evicted) const {
    return absl::StrCat("evicted: ", evicted.sentence);
  }
  std::string operator()(const LeaveAnswer& answer) const {
    return answer.may_leave ? "may leave" : absl::StrCat("has to stay: ", answer.why_not);
  }
  std::string operator()(const LogWanted& wanted) const {
    std::string text = absl::StrCat("bring the log of round ", wanted.round.number, ", ranks");
    for (const RankRange& ranks : wanted.ranks) {
      absl::StrAppend(&text, " ", ranks.first, "-", ranks.last);
    }
    for (const LogPosition& position : wanted.extent.from) {
      absl::StrAppend(&text, ", ", position.stream == LogStream::kStdout ? "stdout" : "stderr",
                      " of rank ", position.rank, " from byte ", position.offset);
    }
    if (wanted.extent.tail) absl::StrAppend(&text, ", last ", *wanted.extent.tail, " lines");
    return absl::StrCat(text, wanted.extent.follow ? ", and follow it" : "", ", to ",
                        wanted.delivery);
  }
};

std::string RankText(const RankSnapshot& rank) {
  std::string text = absl::StrCat("  rank ", rank.rank, ": ");
  if (rank.told.step) absl::StrAppend(&text, "step ", *rank.told.step, ", ");
  absl::StrAppend(&text, base::Seconds(rank.told.ago), " ago");
  if (const auto own = OwnSeconds(rank.told)) {
    absl::StrAppend(&text, ", ", std::lround(1000 * *own), " ms of its own");
  }
  if (rank.straggling) {
    absl::StrAppend(&text, "; ", std::lround(100 * rank.straggling->slower), " % slower, in ",
                    rank.straggling->phase, ", for ", base::Seconds(rank.straggling->age));
  }
  return text;
}

}  // namespace

std::string DirectiveText(const Directive& directive) {
  return std::visit(Text{}, directive);
}

std::vector<std::string> SnapshotText(const JobSnapshot& job) {
  std::vector<std::string> lines = {
      absl::StrCat(job.run_id, " ", StateName(job.state), ": ", job.sentence)};
  for (const NodeSnapshot& node : job.nodes) {
    lines.push_back(absl::StrCat(node.group_rank < 0 ? "-" : absl::StrCat(node.group_rank), " ",
                                 node.node.host, " ", StateName(node.state),
                                 node.rank_reason.empty() ? "" : ": ", node.rank_reason));
    for (const RankSnapshot& rank : node.ranks) lines.push_back(RankText(rank));
    for (const RankAlertSnapshot& alert : node.alerts) {
      lines.push_back(absl::StrCat("  rank ", alert.rank, " ", alert.told.what, ", ",
                                   Name(alert.told.kind), " for ", base::Seconds(alert.told.ago)));
    }
  }
  return lines;
}

}  // namespace muster::rendezvous
