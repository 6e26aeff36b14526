"""Steps of srun: their layout on the allocation, their processors, their files."""
