"""Parts of the policy, each after the file that configures it: queues, profiles, users, hosts, resources."""
