#include "trainer/mesh/mesh.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

// The member of `of`, a Mesh or a MeshPlace, that belongs to `dimension`.
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

}  // namespace muster::trainer
