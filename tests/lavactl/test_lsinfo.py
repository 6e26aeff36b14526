"""Golden output of lsinfo (lsf.md 1.7, 3.6)."""

import pytest

from tests.lavactl.scripted import Desk


def _site(desk: Desk) -> None:
    """A site with a licence and two models of hosts."""
    reply = desk.client.resources_reply
    reply.definitions.add(name="lic_vcs", kind="Numeric", description="Simulator licences", consumable=True)
    reply.types.append("X86_64")
    reply.models.add(name="Intel_E5", cpu_factor=60, type="X86_64")
    reply.models.add(name="Old", cpu_factor=12.5)


def test_lsinfo_has_three_sections(desk: Desk) -> None:
    """lsf.md 1.7: resources, then types, then models with their CPU factors."""
    _site(desk)
    lines = desk.type("lsinfo").out.splitlines()
    assert lines[0] == "RESOURCE_NAME    TYPE  ORDER  DESCRIPTION"
    assert lines[2] == "r1m           Numeric   Inc   1-minute CPU run queue length (alias: cpu)"
    assert "lic_vcs       Numeric   Dec   Simulator licences" in lines
    assert lines[-6:] == [
        "TYPE_NAME",
        "X86_64",
        "",
        "MODEL_NAME      CPU_FACTOR      ARCHITECTURE",
        "Intel_E5             60.00      X86_64",
        "Old                  12.50",
    ]


def test_lsinfo_of_one_section(desk: Desk) -> None:
    """lsf.md 1.7: -r, -m and -t select sections."""
    _site(desk)
    assert desk.type("lsinfo", "-t").out == "TYPE_NAME\nX86_64\n"
    assert desk.type("lsinfo", "-m").out.startswith("MODEL_NAME")
    assert "MODEL_NAME" not in desk.type("lsinfo", "-r").out


def test_lsinfo_of_named_resources(desk: Desk) -> None:
    """-l shows more of each; an unknown name is one sentence, and the others are shown."""
    _site(desk)
    result = desk.type("lsinfo", "-l", "mem", "nope")
    assert (result.code, result.err) == (255, "nope: Bad resource name\n")
    assert result.out == (
        "RESOURCE_NAME:  mem\n"
        "DESCRIPTION:  Available memory (Mbytes)\n"
        "   TYPE  ORDER  INTERVAL  STATIC  CONSUMABLE\n"
        "Numeric    Dec        15      No         Yes\n"
    )


@pytest.mark.parametrize("option", ["-p", "-s"])
def test_bresources_says_what_takes_the_place(desk: Desk, option: str) -> None:
    """Options of LSF without a meaning here."""
    result = desk.type("bresources", option)
    assert result.code == 255
    assert result.err.startswith(f"bresources {option}: ")
    assert "yet" not in result.err
