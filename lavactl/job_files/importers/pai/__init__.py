"""Jobs of OpenPAI, in both of its formats."""
