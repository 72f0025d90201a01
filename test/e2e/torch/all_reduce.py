"""An unmodified PyTorch script: every rank adds its number plus one to the sum."""
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(total)
print("rank %d of %d: sum %g" % (dist.get_rank(), dist.get_world_size(), total.item()))
dist.destroy_process_group()
