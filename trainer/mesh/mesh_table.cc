#include "trainer/mesh/mesh_table.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace muster::trainer {
namespace {

using Hosts = std::vector<std::string>;

// In the order of their first ranks.
Hosts EachHost(const Hosts& host_of_rank) {
  Hosts hosts;
  for (const std::string& host : host_of_rank) {
    if (std::find(hosts.begin(), hosts.end(), host) == hosts.end()) hosts.push_back(host);
  }
  return hosts;
}

std::string Place(const MeshPlace& place) {
  std::string text;
  for (const Dimension dimension : kDimensions) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", ShortName(dimension), " ",
                    place.Of(dimension));
  }
  return text;
}

// The most hosts that a group of `dimension` is on.
std::size_t HostsSpanned(const Mesh& mesh, const Hosts& host_of_rank, Dimension dimension) {
  std::size_t most = 1;
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    if (mesh.PlaceOf(rank).Of(dimension) > 0) continue;  // of a group that was looked at
    std::set<std::string> hosts;
    for (const int member : mesh.MembersOf(rank, dimension)) {
      hosts.insert(host_of_rank[static_cast<std::size_t>(member)]);
    }
    most = std::max(most, hosts.size());
  }
  return most;
}

std::string Megabytes(std::int64_t bytes) {
  const auto count = static_cast<double>(bytes);
  return bytes < 1'000'000 ? absl::StrFormat("%.2f kB", count / 1e3)
                           : absl::StrFormat("%.2f MB", count / 1e6);
}

std::optional<std::int64_t> BytesOf(const DimensionBytes& bytes, Dimension dimension) {
  return bytes[static_cast<std::size_t>(dimension)];
}

std::string DimensionLine(const Mesh& mesh, const Hosts& host_of_rank, const DimensionBytes& bytes,
                          Dimension dimension) {
  const std::size_t hosts = HostsSpanned(mesh, host_of_rank, dimension);
  const auto sent = BytesOf(bytes, dimension);
  return absl::StrCat(
      "\n  ", LongName(dimension), ": groups of ", mesh.Of(dimension), " ranks ",
      hosts == 1 ? "on one host" : absl::StrCat("across ", hosts, " hosts"),
      sent ? absl::StrCat(", ", Megabytes(*sent), " sent by a rank in a step") : "");
}

}  // namespace

std::string MeshTable(const Mesh& mesh, const Hosts& host_of_rank, const DimensionBytes& bytes) {
  const Hosts hosts = EachHost(host_of_rank);
  std::string table = absl::StrCat("mesh ", mesh.Text(), " of ", mesh.ranks(), " ranks on ",
                                   hosts.size(), hosts.size() == 1 ? " host" : " hosts");
  int lines = 0;
  for (const std::string& host : hosts) {
    if (++lines > kMostHostLines) {
      absl::StrAppend(&table, "\n  and ", hosts.size() - kMostHostLines, " more hosts");
      break;
    }
    std::string ranks;
    for (int rank = 0; rank < mesh.ranks(); ++rank) {
      if (host_of_rank[static_cast<std::size_t>(rank)] != host) continue;
      absl::StrAppend(&ranks, ranks.empty() ? "" : ", ", "rank ", rank, " (",
                      Place(mesh.PlaceOf(rank)), ")");
    }
    absl::StrAppend(&table, "\n  host ", host, ": ", ranks);
  }
  for (const Dimension dimension : kDimensions) {
    if (mesh.Of(dimension) == 1) continue;
    absl::StrAppend(&table, DimensionLine(mesh, host_of_rank, bytes, dimension));
  }
  return table;
}

std::vector<std::string> MeshWarnings(const Mesh& mesh, const Hosts& host_of_rank,
                                      const DimensionBytes& bytes) {
  if (HostsSpanned(mesh, host_of_rank, Dimension::kTensor) == 1) return {};
  const auto sent = BytesOf(bytes, Dimension::kTensor);
  return {
      absl::StrCat("--mesh ", mesh.Text(), ": tensor ranks that work on one layer are on ",
                   "different hosts, and each layer waits for the network",
                   sent ? absl::StrCat(" (", Megabytes(*sent), " from each rank in a step)") : "",
                   "; take a tp that divides the ranks of each host")};
}

}  // namespace muster::trainer
