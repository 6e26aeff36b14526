"""Links to the agents: outboxes of orders, sealed orders, job specs, warnings about hosts."""
