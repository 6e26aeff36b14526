"""Real daemons, real hosts, real jobs: what users and administrators see, judged by what the jobs themselves wrote."""
