"""torch's own clipping.    usage: clip.py PREFIX MAX_NORM...      writes before:I, after:I and norm to the file PREFIX + MAX_NORM"""
import sys

import torch

import tensors


def main(max_norm, path):
    torch.manual_seed(6)
    parameters = [torch.zeros(shape, requires_grad=True) for shape in [(300, 301), (7,), (2, 3, 4)]]
    for p in parameters[:2]:
        p.grad = torch.randn(p.shape)
    out = [("before:%d" % i, p.grad.clone()) for i, p in enumerate(parameters[:2])]
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    out += [("after:%d" % i, p.grad) for i, p in enumerate(parameters[:2])]
    tensors.write(path, out + [("norm", norm)])


for max_norm in sys.argv[2:]:
    main(float(max_norm), sys.argv[1] + max_norm)
