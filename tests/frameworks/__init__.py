"""Jobs with the frameworks themselves. `make test` runs torchrun, `make test-frameworks` all of them."""
