#include "trainer/pipeline/mesh.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace muster::trainer {
namespace {

// The member of `of`, a Mesh or a MeshPlace, for `dimension`.
template <typename Of>
auto& MemberOf(Of& of, Dimension dimension) {
  switch (dimension) {
    case Dimension::kPipeline:
      return of.pipeline;
    case Dimension::kData:
      return of.data;
    case Dimension::kTensor:
      return of.tensor;
  }
  std::abort();
}

}  // namespace

const char* ShortName(Dimension dimension) {
  static constexpr std::array<const char*, 3> kNames = {"pp", "dp", "tp"};
  return kNames[static_cast<std::size_t>(dimension)];
}

const char* LongName(Dimension dimension) {
  static constexpr std::array<const char*, 3> kNames = {"pipeline", "data", "tensor"};
  return kNames[static_cast<std::size_t>(dimension)];
}

int MeshPlace::Of(Dimension dimension) const {
  return MemberOf(*this, dimension);
}

int Mesh::Of(Dimension dimension) const {
  return MemberOf(*this, dimension);
}

MeshPlace Mesh::PlaceOf(int rank) const {
  return {rank / (data * tensor), rank / tensor % data, rank % tensor};
}

int Mesh::RankOf(const MeshPlace& place) const {
  return (place.pipeline * data + place.data) * tensor + place.tensor;
}

std::vector<int> Mesh::MembersOf(int rank, Dimension dimension) const {
  std::vector<int> members;
  MeshPlace place = PlaceOf(rank);
  for (int i = 0; i < Of(dimension); ++i) {
    MemberOf(place, dimension) = i;
    members.push_back(RankOf(place));
  }
  return members;
}

std::string Mesh::Text() const {
  return absl::StrCat("pp=", pipeline, ",dp=", data, ",tp=", tensor);
}

namespace {

constexpr int kLargest = 1'000'000;

std::vector<int> DivisorsOf(int number) {
  std::vector<int> divisors;
  for (int i = 1; i <= number; ++i) {
    if (number % i == 0) divisors.push_back(i);
  }
  return divisors;
}

// "tp=1", "tp=1 or 2", "tp=1, 2 or 4".
std::string Choice(Dimension dimension, const std::vector<int>& sizes) {
  std::string text = absl::StrCat(ShortName(dimension), "=", sizes[0]);
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    absl::StrAppend(&text, i + 1 == sizes.size() ? " or " : ", ", sizes[i]);
  }
  return text;
}

std::optional<int>* SizeIn(MeshRequest& request, absl::string_view name) {
  if (name == ShortName(Dimension::kPipeline)) return &request.pipeline;
  if (name == ShortName(Dimension::kData)) return &request.data;
  if (name == ShortName(Dimension::kTensor)) return &request.tensor;
  return nullptr;
}

}  // namespace

absl::StatusOr<MeshRequest> ParseMeshRequest(const std::string& text) {
  const auto bad = [&text](const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--mesh ", text, ": ", why...,
        "; it is auto, or sizes of the pipeline, data and tensor dimensions, as pp=2,dp=2,tp=2"));
  };
  MeshRequest request;
  if (text == "auto") {
    request.choose = true;
    return request;
  }
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> sides = absl::StrSplit(part, '=');
    std::optional<int>* const size = SizeIn(request, sides[0]);
    if (size == nullptr) return bad("'", sides[0], "' is not a dimension");
    if (size->has_value()) return bad(sides[0], " is there twice");
    int value = 0;
    if (sides.size() != 2 || !absl::SimpleAtoi(sides[1], &value) || value < 1 || value > kLargest) {
      return bad(sides[0], " needs a whole number from 1 on");
    }
    *size = value;
  }
  return request;
}

absl::Status CheckMesh(const Mesh& mesh, const MeshLimits& limits) {
  if (limits.tensor_divides % mesh.tensor != 0) {
    const std::vector<int> fit = DivisorsOf(limits.tensor_divides);
    return absl::InvalidArgumentError(
        limits.tensor_divides == 1
            ? absl::StrCat("--mesh ", mesh.Text(), ": the layers of ", limits.model,
                           " cannot be split over ranks; take tp=1")
            : absl::StrCat("--mesh ", mesh.Text(), ": the ", limits.tensor_divides, " ",
                           limits.tensor_divides_what, " of ", limits.model,
                           " cannot be shared evenly by ", mesh.tensor, " ranks; take ",
                           Choice(Dimension::kTensor, fit)));
  }
  if (mesh.pipeline > limits.stages) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--mesh ", mesh.Text(), ": ", limits.model, " can be cut into ", limits.stages,
        " stages at most, and not into ", mesh.pipeline, "; take pp=", limits.stages, " or less"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Mesh> FitMesh(const MeshRequest& request, int ranks, const MeshLimits& limits) {
  Mesh mesh = {.pipeline = request.pipeline.value_or(1), .tensor = request.tensor.value_or(1)};
  // Sizes may be large: they are multiplied only after each has been found to divide the ranks.
  const std::int64_t others = std::int64_t{mesh.pipeline} * mesh.tensor;
  if (ranks % others != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--mesh: pp=", mesh.pipeline, " times tp=", mesh.tensor, " is ", others,
        ", which does not divide the ", ranks, " ranks of this job; the product must be one of ",
        absl::StrJoin(DivisorsOf(ranks), ", ")));
  }
  mesh.data = static_cast<int>(ranks / others);
  if (request.data && *request.data != mesh.data) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--mesh pp=", mesh.pipeline, ",dp=", *request.data, ",tp=", mesh.tensor, ": that is ",
        others * *request.data, " ranks, and this job has ", ranks, "; take dp=", mesh.data,
        ", leave it out, or start ", others * *request.data, " ranks"));
  }
  const absl::Status suits = CheckMesh(mesh, limits);
  if (!suits.ok()) return suits;
  return mesh;
}

namespace {

// All meshes of `ranks` ranks.
std::vector<Mesh> MeshesOf(int ranks) {
  std::vector<Mesh> meshes;
  for (int pipeline = 1; pipeline <= ranks; ++pipeline) {
    if (ranks % pipeline != 0) continue;
    for (int tensor = 1; tensor <= ranks / pipeline; ++tensor) {
      if (ranks / pipeline % tensor == 0) {
        meshes.push_back({pipeline, ranks / pipeline / tensor, tensor});
      }
    }
  }
  return meshes;
}

// Sort key, the least is best: few ranks per model, and as many of those as possible in the tensor
// dimension.
std::tuple<int, int> Order(const Mesh& mesh) {
  return {mesh.pipeline * mesh.tensor, mesh.pipeline};
}

std::string StateMegabytes(std::int64_t bytes) {
  return absl::StrFormat("%.1f MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace

std::int64_t StateBytesOfRank(const Mesh& mesh, std::int64_t state_bytes) {
  const std::int64_t sharing = std::int64_t{mesh.pipeline} * mesh.tensor;
  return (state_bytes + sharing - 1) / sharing;
}

bool TensorStaysInHosts(const Mesh& mesh, const std::vector<int>& host_of_rank) {
  for (std::size_t rank = 0; rank < host_of_rank.size(); ++rank) {
    const std::size_t first = rank - rank % static_cast<std::size_t>(mesh.tensor);
    if (host_of_rank[rank] != host_of_rank[first]) return false;
  }
  return true;
}

absl::StatusOr<Mesh> ChooseMesh(const MeshNeeds& needs, const MeshLimits& limits) {
  const int ranks = static_cast<int>(needs.host_of_rank.size());
  std::optional<Mesh> best;
  std::int64_t least = needs.state_bytes;  // the least that any mesh requires of a rank
  for (const Mesh& mesh : MeshesOf(ranks)) {
    if (!CheckMesh(mesh, limits).ok() || !TensorStaysInHosts(mesh, needs.host_of_rank)) continue;
    const std::int64_t bytes = StateBytesOfRank(mesh, needs.state_bytes);
    least = std::min(least, bytes);
    if (needs.memory_bytes > 0 && bytes > needs.memory_bytes) continue;
    if (!best || Order(mesh) < Order(*best)) best = mesh;
  }
  if (best) return *best;
  return absl::InvalidArgumentError(absl::StrCat(
      "--mesh auto: parameters, gradients and optimizer of ", limits.model, " take ",
      StateMegabytes(needs.state_bytes), ", on ", ranks, " ranks at least ", StateMegabytes(least),
      " each, and a rank has ", StateMegabytes(needs.memory_bytes),
      "; start more ranks, on more hosts, or give --mesh to try it anyway"));
}

namespace {

using Hosts = std::vector<std::string>;

// In order of their first ranks.
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

// The largest number of hosts that a group of `dimension` spans.
std::size_t HostsSpanned(const Mesh& mesh, const Hosts& host_of_rank, Dimension dimension) {
  std::size_t most = 1;
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    if (mesh.PlaceOf(rank).Of(dimension) > 0) continue;  // its group has been counted
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
