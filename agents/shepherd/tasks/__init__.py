"""Tasks beside a job, which outlive the agent."""
