"""Real daemons, real hosts, real jobs: what a user and an administrator would see, judged by what the jobs themselves wrote."""
