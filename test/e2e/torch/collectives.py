"""Collectives, barriers, a group of some ranks, and objects, as a PyTorch script has them."""
import torch
import torch.distributed as dist

dist.init_process_group("gloo", init_method="env://")
rank, size = dist.get_rank(), dist.get_world_size()

total = torch.tensor([float(rank + 1)])
dist.all_reduce(total)
assert total.item() == size * (size + 1) / 2, total
dist.barrier()

evens = dist.new_group(list(range(0, size, 2)))
odds = dist.new_group(list(range(1, size, 2)))
mine = odds if rank % 2 else evens
part = torch.tensor([float(rank)])
dist.all_reduce(part, group=mine)
assert part.item() == sum(range(rank % 2, size, 2)), part

objects = [None] * size
dist.all_gather_object(objects, {"rank": rank, "text": "x" * (1000 * rank)})
assert [o["rank"] for o in objects] == list(range(size)), objects
dist.barrier()
print("rank %d of %d: collectives are right" % (rank, size), flush=True)
dist.destroy_process_group()
