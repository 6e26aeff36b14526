"""Activity of the attempts of this host: parts that hang, hosts without a process, stacks."""
