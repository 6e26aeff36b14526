"""Calls to the master through the local agent, without the protobuf library."""
