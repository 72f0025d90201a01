"""The networks of trainer/models under torch.ao.quantization, and what they observe and compute.

usage: qat.py SEED PREFIX MODEL...      writes tensors to the file PREFIX + MODEL for each, in this order, float64:
  first, second  two batches
  out            the result of the second in training, after the first
  state:NAME     every entry of state_dict() after both, with parameters as they were made
  eval           the result of the second in evaluation, with frozen ranges
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


def main(model, seed, path):
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    net = Stubbed(models.IMAGES[model][0]())
    net.train()
    linear = [name for name, layer in net.named_children() if isinstance(layer, nn.Linear)]
    quantization.fuse_modules_qat(net, [[name, str(int(name) + 1)] for name in linear[:-1]], inplace=True)
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
    tensors.write(path, [(name, value.double()) for name, value in out])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name in sys.argv[3:]:
        main(name, int(sys.argv[1]), sys.argv[2] + name)
