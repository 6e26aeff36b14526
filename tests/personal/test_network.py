"""Addresses and interface names of personal clusters: free, short, and never another's."""

import ipaddress
import random
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavactl.errors import CommandError
from lavactl.personal.hosts import network


def a_network(text: str) -> ipaddress.IPv4Network:
    """Short for the type."""
    return ipaddress.IPv4Network(text)


@given(
    st.integers(),
    st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(9, 32)), max_size=30),
)
def test_a_chosen_subnet_overlaps_nothing(seed: int, taken: list[tuple[int, int]]) -> None:
    """For any networks of the machine, the chosen /24 is private and free."""
    networks = [ipaddress.IPv4Network((address, length), strict=False) for address, length in taken]
    chosen = a_network(network.choose_subnet(networks, random.Random(seed)))
    assert chosen.prefixlen == 24
    assert chosen.is_private
    assert not any(chosen.overlaps(other) for other in networks)


def test_a_machine_that_routes_all_of_ten_gets_another_range() -> None:
    """A VPN that takes 10/8 is common."""
    chosen = a_network(network.choose_subnet([a_network("10.0.0.0/8")], random.Random(1)))
    assert chosen.subnet_of(a_network("172.16.0.0/12"))


def test_a_machine_without_any_free_network_is_told() -> None:
    """One sentence instead of an endless search."""
    everything = [a_network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "198.18.0.0/15")]
    with pytest.raises(CommandError, match="No private network is free"):
        network.choose_subnet(everything, random.Random(1))


def test_interface_names_fit_the_kernel() -> None:
    """15 characters, for the last host of the largest cluster too."""
    assert len(network.bridge_name("abcdef")) <= 15
    assert len(network.wire_name("abcdef", network.HOSTS_MAX)) <= 15


def test_hosts_and_master_have_different_addresses() -> None:
    """All of them within the subnet."""
    numbers = [*range(1, network.HOSTS_MAX + 1), network.MASTER_NUMBER]
    addresses = [network.address_of("10.1.2.0/24", number) for number in numbers]
    assert len(set(addresses)) == len(numbers)
    assert addresses[0] == "10.1.2.1"
    assert addresses[-1] == "10.1.2.254"


def test_the_machines_own_networks_count_as_taken() -> None:
    """Networks of this machine's addresses are never chosen."""
    taken = network.taken_networks()
    assert any(a_network("127.0.0.1/32").subnet_of(other) for other in taken)
    assert not any(other.prefixlen == 0 for other in taken)


@pytest.mark.parametrize("listener_address", ["127.0.0.1", "0.0.0.0"])
def test_a_port_in_use_is_passed_over(listener_address: str) -> None:
    """Also one that another program has opened on all addresses."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((listener_address, 0))
        listener.listen()
        busy = listener.getsockname()[1]
        assert network.free_port("127.0.0.1", busy) != busy
    with pytest.raises(CommandError, match="No port can be opened"):
        network.free_port("192.0.2.77", 7000)
