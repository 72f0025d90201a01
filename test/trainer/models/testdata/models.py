"""The networks of trainer/models as a Python user would write them, and what they compute.

usage: models.py SEED PREFIX MODEL...      writes tensors to the file PREFIX + MODEL for each, in this order:
  state:NAME   every entry of state_dict() before anything was computed, float32
  input        float64, or int64 tokens
  train        the scores in training, float64
  grad:NAME    the gradients of the sum of their squares, for every parameter
  after:NAME   every buffer after that
  eval         the scores in evaluation, float64
"""
import math
import sys

import torch
from torch import nn
from torch.nn import functional

import tensors


def cnn(channels, side, classes):
    return nn.Sequential(
        nn.Conv2d(channels, 16, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * (side // 4) * (side // 4), 128), nn.ReLU(), nn.Linear(128, classes))


def mlp(inputs, hidden, classes):
    layers = [nn.Flatten()]
    for width in hidden:
        layers += [nn.Linear(inputs, width), nn.ReLU()]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, classes))


class BasicBlock(nn.Module):
    """torchvision/models/resnet.py, BasicBlock."""

    def __init__(self, inplanes, planes, stride, downsample):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = downsample

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet18(nn.Module):
    """torchvision/models/resnet.py, resnet18, with its own stem or the one for small images."""

    def __init__(self, channels, classes, imagenet_stem=False):
        super().__init__()
        self.inplanes = 64
        self.conv1 = (nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False) if imagenet_stem
                      else nn.Conv2d(channels, 64, 3, padding=1, bias=False))
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1) if imagenet_stem else nn.Identity()
        self.layer1 = self.make_layer(64, 1)
        self.layer2 = self.make_layer(128, 2)
        self.layer3 = self.make_layer(256, 2)
        self.layer4 = self.make_layer(512, 2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512, classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, nn.BatchNorm2d):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def make_layer(self, planes, stride):
        downsample = None
        if stride != 1 or self.inplanes != planes:
            downsample = nn.Sequential(
                nn.Conv2d(self.inplanes, planes, 1, stride=stride, bias=False), nn.BatchNorm2d(planes))
        layers = [BasicBlock(self.inplanes, planes, stride, downsample)]
        self.inplanes = planes
        layers.append(BasicBlock(planes, planes, 1, None))
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2)
                   for part in self.c_attn(x).split(c, dim=2))
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(c // self.heads)
        scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), float("-inf"))
        return self.c_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.c_proj(functional.gelu(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = Mlp(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    def __init__(self, vocabulary, context, layers, heads, width, tied):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(vocabulary, width),
            "wpe": nn.Embedding(context, width),
            "h": nn.ModuleList([Block(width, heads) for _ in range(layers)]),
            "ln_f": nn.LayerNorm(width),
        })
        self.lm_head = None if tied else nn.Linear(width, vocabulary, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, 0, 0.02 / math.sqrt(2 * layers) if "c_proj" in name else 0.02)
            elif ".ln_" not in name:
                nn.init.zeros_(parameter)

    def forward(self, tokens):
        body = self.transformer
        x = body.wte(tokens) + body.wpe(torch.arange(tokens.shape[1]))
        for block in body.h:
            x = block(x)
        x = body.ln_f(x)
        return functional.linear(x, body.wte.weight) if self.lm_head is None else self.lm_head(x)


IMAGES = {
    "cnn": (lambda: cnn(1, 28, 10), (5, 1, 28, 28)),
    "cnn-cifar": (lambda: cnn(3, 32, 10), (5, 3, 32, 32)),
    "mlp": (lambda: mlp(784, [256, 256], 10), (5, 1, 28, 28)),
    "mlp-large": (lambda: mlp(784, [4096, 4096, 1024], 10), (3, 1, 28, 28)),
    "resnet18": (lambda: ResNet18(1, 10), (4, 1, 28, 28)),
    "resnet18-cifar": (lambda: ResNet18(3, 100), (2, 3, 32, 32)),
    "resnet18-imagenet": (lambda: ResNet18(3, 1000, imagenet_stem=True), (2, 3, 64, 64)),
}
TEXTS = {
    "gpt": lambda: Gpt(256, 32, 3, 4, 48, tied=False),
    "gpt-tied": lambda: Gpt(256, 32, 2, 2, 32, tied=True),
}


def main(model, seed, path):
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    net = IMAGES[model][0]() if model in IMAGES else TEXTS[model]()
    out = [("state:" + name, value.clone()) for name, value in net.state_dict().items()]
    net.double()
    if model in IMAGES:
        inputs = torch.randn(IMAGES[model][1], dtype=torch.float64)
    else:
        inputs = torch.randint(0, 256, (2, 20))
    out.append(("input", inputs))
    scores = net(inputs)
    scores.square().sum().backward()
    out.append(("train", scores))
    out += [("grad:" + name, value.grad) for name, value in net.named_parameters()]
    out += [("after:" + name, value.clone()) for name, value in net.named_buffers()]
    net.eval()
    out.append(("eval", net(inputs)))
    tensors.write(path, out)


if __name__ == "__main__":
    for name in sys.argv[3:]:
        main(name, int(sys.argv[1]), sys.argv[2] + name)
