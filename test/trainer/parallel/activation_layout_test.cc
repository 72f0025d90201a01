#include "trainer/parallel/mesh_links.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace muster::trainer {
namespace {

bool Same(const ActivationLayout& a, const ActivationLayout& b) {
  return a.type == b.type && a.sizes == b.sizes && a.channels_last == b.channels_last;
}

TEST(ActivationLayoutTest, TravelsAsAHeader) {
  for (const at::Tensor& tensor :
       {at::randn({}), at::randn({2, 16, 64}, at::kDouble), at::randn({7}).to(at::kBFloat16),
        at::randn({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast)}) {
    const ActivationLayout layout = LayoutOf(tensor);
    EXPECT_TRUE(Same(ReadHeader(HeaderOf(layout)), layout)) << Described(layout);
  }
  const std::vector<std::int64_t> ones(13, 1);
  EXPECT_THROW(HeaderOf(LayoutOf(at::randn(ones))), std::invalid_argument);
  EXPECT_EQ(Described(LayoutOf(at::randn({2, 16, 64}))), "2 x 16 x 64 Float");
}

TEST(ActivationLayoutTest, ElementsArriveInTheLayoutThatTheyHad) {
  const at::Tensor images = at::randn({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  const ActivationLayout layout = LayoutOf(images);
  const at::Tensor arrived = EmptyOf(layout, at::kCPU);
  // Receives write into the tensor itself, and sends need no copy.
  ElementsOf(arrived, layout).copy_(ElementsOf(images, layout));
  EXPECT_TRUE(arrived.equal(images));
  EXPECT_TRUE(arrived.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_EQ(ElementsOf(images, layout).data_ptr(), images.data_ptr());
  // A gradient with another layout is copied.
  EXPECT_TRUE(ElementsOf(images.contiguous(), layout).equal(ElementsOf(images, layout)));
}

TEST(ActivationLayoutsTest, AreKnownFromTheNextStepOn) {
  ActivationLayouts layouts;
  const ActivationLayouts::Key key = {.training = true, .part = 1, .input_sizes = {4, 7}};
  layouts.Learn(key, LayoutOf(at::randn({4, 9})));
  EXPECT_EQ(layouts.Find(key), nullptr) << "the other micro-batches of the step have headers, too";
  layouts.Settle();
  ASSERT_NE(layouts.Find(key), nullptr);
  EXPECT_EQ(layouts.Find(key)->sizes, (std::vector<std::int64_t>{4, 9}));
  EXPECT_EQ(layouts.Find({.training = false, .part = 1, .input_sizes = {4, 7}}), nullptr);
  EXPECT_EQ(layouts.Find({.training = true, .part = 1, .input_sizes = {3, 7}}), nullptr);
}

TEST(ActivationLayoutsTest, ForgetAPartOfWhichTheyKnowVeryMuch) {
  ActivationLayouts layouts;
  const auto key = [](int part, std::int64_t length) {
    return ActivationLayouts::Key{.part = part, .input_sizes = {length}};
  };
  for (std::int64_t length = 0; length < 5000; ++length) layouts.Learn(key(0, length), {});
  layouts.Learn(key(1, 0), {});
  layouts.Settle();
  EXPECT_EQ(layouts.Find(key(0, 0)), nullptr);
  EXPECT_NE(layouts.Find(key(1, 0)), nullptr);
}

}  // namespace
}  // namespace muster::trainer
