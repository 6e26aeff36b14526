"""LSF_UNIT_FOR_LIMITS in requirements: IBM's lsf.conf reference, LSF_UNIT_FOR_LIMITS and LSF_ENABLE_TMP_UNIT."""

import pytest

from lavad.core.language.requirements import gpu, parser, select
from lavad.core.language.requirements.vocabulary import Vocabulary

GB = Vocabulary(is_open=True, unit_mib=1024.0)
GB_AND_TMP = Vocabulary(is_open=True, unit_mib=1024.0, tmp_unit_mib=1024.0)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("mem=1", "mem=1024"),
        ("mem=1GB", "mem=1024"),
        ("mem=512MB", "mem=512"),
        ("mem=0.5/task:duration=2", "mem=512/task:duration=120s"),
        ("mem=(4 2):duration=(10 20):threshold=1", "mem=(4096 2048):duration=(600s 1200s):threshold=1024"),
        ("swp=2,swap=3", "swp=3072"),
        ("tmp=3", "tmp=3"),
        ("lic=2", "lic=2"),
    ],
)
def test_amounts_without_a_unit(text: str, found: str) -> None:
    """Memory and swap are in the unit of the site, tmp in MB; other resources have none."""
    usage = parser.parse(f"rusage[{text}]", GB).term.usages[0]
    assert parser.rusage.text_of(usage.reserves) == found


def test_tmp_has_the_unit_where_that_is_wanted() -> None:
    """IBM's example: mem=1 GB, swp=2 GB, tmp=3 GB, and tmp>3 GB."""
    term = parser.parse("rusage[mem=1,swp=2,tmp=3] select[tmp>3]", GB_AND_TMP).term
    assert parser.rusage.text_of(term.usages[0].reserves) == "mem=1024,swp=2048,tmp=3072"
    assert term.select == "tmp > 3072"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("mem>1", "mem > 1024"),
        ("mem > 1GB", "mem > 1024"),
        ("4 <= maxmem", "4096 <= maxmem"),
        ("mem>1 && ncpus>1 && r1m<0.5", "(mem > 1024) && (ncpus > 1) && (r1m < 0.5)"),
        ("mem > ncpus*4", "mem > ((ncpus * 4) * 1024)"),
        ("mem - 2 > 4", "(mem - 2048) > 4096"),
        ("mem + swp >= 2*maxmem + 1", "(mem + swp) >= ((2 * maxmem) + 1024)"),
        ("mem/maxmem > 0.5", "(mem / maxmem) > 0.5"),
        ("mem/ncpus > 2", "(mem / ncpus) > 2048"),
        ("!(mem < 1)", "!(mem < 1024)"),
        ("mem > -1", "mem > -1024"),
        ("tmp>3", "tmp > 3"),
        ("mem=2:r1m=0.5", "(mem >= 2048) && (r1m <= 0.5)"),
        ("mem", "mem"),
        ("tmp > 4GB && mem > 4", "(tmp > 4096) && (mem > 4096)"),
    ],
)
def test_comparisons_with_sizes(text: str, found: str) -> None:
    """A number is in the site's unit where it is compared with a size, and a plain number elsewhere."""
    assert select.text_of(select.parse(text, vocabulary=GB)) == found
    again = select.parse(found)
    assert select.text_of(again) == found


def test_without_a_unit_sizes_are_mib() -> None:
    """As LSF's manual says of resources, whatever the unit of limits is."""
    term = parser.parse("mem>100 rusage[mem=200]").term
    assert (term.select, term.usages[0].reserves[0].first) == ("mem > 100", 200_000)


def test_memory_of_gpus_has_the_same_form() -> None:
    """IBM's bsub -gpu: gmem is written as mem in rusage."""
    assert gpu.parse("num=1:gmem=2", unit_mib=1024.0).memory_mib == 2048
    assert gpu.parse("num=1:gmem=2G", unit_mib=1024.0).memory_mib == 2048
    assert gpu.parse("num=1:gmem=2").memory_mib == 2
