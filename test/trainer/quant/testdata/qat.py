"""The networks of trainer/models under torch.ao.quantization, and what they observe and compute.

usage: qat.py SEED PREFIX MODEL...      writes tensors to the file PREFIX + MODEL for each, in this order, float64:
  first, second  two batches
  out            the result of the second in training, after the first
  state:NAME     every entry of state_dict() after both, with parameters as they were made
  eval           the result of the second in evaluation, with frozen ranges
  int8           the same of the converted network, if MODEL is a resnet18
"""
import sys
import warnings

import torch
from torch import nn
from torch.ao import quantization

import models
import tensors


class Stubbed(nn.Module):
    """The layers of a Sequential under their own names, behind a stub for the inputs."""

    def __init__(self, net):
        super().__init__()
        self.quant = quantization.QuantStub()
        for name, layer in net.named_children():
            self.add_module(name, layer)

    def forward(self, x):
        for layer in self.children():
            x = layer(x)
        return x


class AddingBlock(models.BasicBlock):
    """A block whose sum can be quantized."""

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.add_relu.add_relu(out, identity)


class StubbedResNet18(models.ResNet18):
    def forward(self, x):
        return self.dequant(super().forward(self.quant(x)))


def stubbed_resnet18(net):
    """As torchvision.models.quantization does it, with the stub for the inputs first."""
    net.__class__ = StubbedResNet18
    net.quant, net.dequant = quantization.QuantStub(), quantization.DeQuantStub()
    net._modules.move_to_end("quant", last=False)
    net.train()
    quantization.fuse_modules_qat(net, [["conv1", "bn1", "relu"]], inplace=True)
    for block in net.modules():
        if isinstance(block, models.BasicBlock):
            block.__class__ = AddingBlock
            block.add_relu = nn.quantized.FloatFunctional()
            quantization.fuse_modules_qat(block, [["conv1", "bn1", "relu"], ["conv2", "bn2"]], inplace=True)
            if block.downsample is not None:
                quantization.fuse_modules_qat(block.downsample, [["0", "1"]], inplace=True)
    return net


def stubbed_sequential(sequential):
    net = Stubbed(sequential)
    net.train()
    linear = [name for name, layer in net.named_children() if isinstance(layer, nn.Linear)]
    quantization.fuse_modules_qat(net, [[name, str(int(name) + 1)] for name in linear[:-1]], inplace=True)
    return net


def main(model, seed, path):
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    torch.backends.quantized.engine = "onednn"
    residual = model.startswith("resnet18")
    net = (stubbed_resnet18 if residual else stubbed_sequential)(models.IMAGES[model][0]())
    net.qconfig = quantization.get_default_qat_qconfig("onednn")
    quantization.prepare_qat(net, inplace=True)
    shape = models.IMAGES[model][1]
    first, second = torch.randn(shape), torch.randn(shape) * 1.5
    net(first)
    out = [("first", first), ("second", second), ("out", net(second))]
    out += [("state:" + name, value.clone()) for name, value in net.state_dict().items()]
    net.eval()
    net.apply(quantization.disable_observer)
    out.append(("eval", net(second)))
    if residual:
        # Python 1.13 trains weights with a scale of max / 127, and would convert them with max / 127.5.
        for module in net.modules():
            if hasattr(module, "weight_fake_quant"):
                own = module.weight_fake_quant
                own.calculate_qparams = lambda own=own: (own.scale, own.zero_point)
        out.append(("int8", quantization.convert(net)(second)))
    tensors.write(path, [(name, value.double()) for name, value in out])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name in sys.argv[3:]:
        main(name, int(sys.argv[1]), sys.argv[2] + name)
