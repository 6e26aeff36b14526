"""Jobs of Kubernetes: Volcano's, Kubeflow's, those of Kueue and others that run pods from templates."""
