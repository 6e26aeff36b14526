"""Job files: descriptions of jobs in lava's own form and in those of other systems, read into one model.

The layers, from below: ``text`` (marked values of YAML and JSON), ``model`` (a job as a file describes it), ``own``
(lava's form), ``importers`` (those of other systems), and ``understanding``, which tells them apart by their content.
"""
