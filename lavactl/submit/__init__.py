"""Conversion of bsub's command line and job script to a job."""
