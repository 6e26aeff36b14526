"""GPUs of this host: one module a vendor, behind the protocol of `vendor`, chosen by `vendors`.

A vendor's names (variables, its daemon, its label) are data, in `protos.gpu_vendors`: commands need them, too.
"""
