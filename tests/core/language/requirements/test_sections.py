"""Single sections: parsing, printing of text that parses to the same, merging of job and queue."""

import pytest

from lavad.core.decide.jobs.request import RequestRules, combined, request_of
from lavad.core.language.requirements import gpu, host_list
from lavad.core.language.requirements.parser import parse, text_of
from lavad.core.language.requirements.vocabulary import Vocabulary
from lavad.core.model import NO_OPTIONS, RoleAsked
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.resources import Resource, ResourceKind

WORDS = Vocabulary(
    {"lic": Resource("lic", ResourceKind.NUMERIC), "rack": Resource("rack", ResourceKind.STRING)}, ("fast",)
)
TEXTS = [
    "select[(mem > 4000 && !fast) || defined(lic)]",
    "select[type == 'ARM' && -ncpus < -(2 + 3) * 4]",
    "r15m=1.5:mem=20:-fast",
    "order[!-slots:r1m]",
    "rusage[mem=(400 300):duration=(10 10m):decay=(0 1),lic=1.5/task:threshold=2]",
    "rusage[mem=500/host || lic=1:duration=2h]",
    "span[ptile='!,ARM:2']",
    "span[block=4] same[type:rack]",
    "span[stripe=2] cu[type=switch:maxcus=2:pref=minavail:balance]",
    "affinity[core(2,same=socket,exclusive=(socket,injob))*2:cpubind=core:membind=localonly:distribute=pack]",
    "2*{select[fast] rusage[mem=10]} + {order[mem]} same[type]",
    "{select[fast]} || {1*{span[hosts=1]} + 3*{}}@60",
]


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_printed_reads_the_same(text: str) -> None:
    """Also when it is printed a second time."""
    wanted = parse(text, WORDS)
    assert parse(text_of(wanted), WORDS) == wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("select[nosuch > 1]", "Bad resource name 'nosuch' at character 8"),
        ("order[mem:nosuch]", "Bad resource name 'nosuch' at character 11"),
        ("same[rack:nosuch]", "Bad resource name 'nosuch' at character 11"),
        ("rusage[ncpus=2]", "Resource 'ncpus' at character 8 can't be reserved"),
        ("rusage[mem=2:duration=later]", "at character 14: expected a duration"),
        ("affinity[core(2]", "at character 16: expected"),
        ("cu[maxcus=0]", "at character 4: expected a whole number"),
        ("{select[fast]} + {span[hosts=1]}", "only one term may be without a number"),
        ("{select[fast]} nonsense", "Bad resource name 'nonsense' at character 16"),
    ],
)
def test_mistakes_are_shown(text: str, said: str) -> None:
    """The refusal has the place and what was expected."""
    with pytest.raises(Refused) as refused:
        parse(text, WORDS)
    assert said in str(refused.value)


def test_job_and_queue_are_merged() -> None:
    """Conditions are and-ed, the job's order holds, reservations are united, and the queue's memory is the most."""
    rules = RequestRules(WORDS, parse("select[fast] order[mem] rusage[mem=100,lic=1] span[hosts=1]", WORDS))
    merged = text_of(combined("select[ncpus>1] order[slots] rusage[mem=50] span[hosts=-1]", rules))
    assert merged == "select[(fast) && (ncpus > 1)] order[slots] rusage[lic=1,mem=50]"
    assert text_of(combined("", rules)) == "select[fast] order[mem] rusage[mem=100,lic=1] span[hosts=1]"
    with pytest.raises(Refused, match="Cannot exceed queue's resource reservation: mem"):
        combined("rusage[mem=200]", rules)


def test_roles_of_a_requirement() -> None:
    """Simple memory is a number, other rusage stays text; its alternatives are alternatives of the request."""
    asked = RoleAsked(4, 4, requirement="rusage[mem=2GB,lic=1 || mem=1GB] span[ptile=2]")
    request, _ = request_of([asked], NO_OPTIONS, RequestRules(WORDS))
    (role,) = request.roles
    assert (role.memory_mib, role.rusage, role.ptile) == (2048, "lic=1", 2)
    assert [one.roles[0].memory_mib for one in request.alternatives] == [1024]


def test_gpu_options() -> None:
    """Parsed values print as text that parses to the same; unsupported ones are refused in one sentence."""
    wanted = gpu.parse("num=2/task:mode=exclusive_process:gmodel=A100-80G:gmem=20G:nvlink=yes:gtile=!:aff=no")
    assert (wanted.num, wanted.per_task, wanted.model, wanted.model_memory_mib) == (2, True, "A100", 81920)
    assert gpu.parse(gpu.text_of(wanted)) == wanted
    wanted = gpu.parse("mps=yes,nocvd:block=yes:j_exclusive=no:gvendor=nvidia")
    assert (wanted.mps, wanted.no_variable, wanted.block, wanted.j_exclusive) == ("yes", True, True, False)
    assert gpu.parse(gpu.text_of(wanted)) == wanted
    for text in (
        "mig=2/3",
        "mig=0",
        "mig=1:mps=yes",
        "gvendor=amd",
        "mps=per_gpu",
        "mps=yes,shared",
        "mps=often",
        "num=0",
        "mode=turbo",
    ):
        with pytest.raises(Refused):
            gpu.parse(text)


def test_who_shares_a_device() -> None:
    """Only by gmem or j_exclusive=no; never with an exclusive mode or an MPS daemon."""
    shared = ("gmem=1G", "j_exclusive=no", "gmem=1G:j_exclusive=no")
    alone = ("num=1", "j_exclusive=yes", "gmem=1G:j_exclusive=yes", "gmem=1G:mode=exclusive_process")
    assert all(gpu.parse(text).is_shared for text in shared)
    assert not any(gpu.parse(text).is_shared for text in (*alone, "mps=yes:j_exclusive=no"))


def test_hosts_by_name() -> None:
    """Groups, preferences, exclusions, others and the first host."""
    from lavad.core.model.rules.names import Names

    hosts, groups = ["a", "b", "c", "d"], {"g": Names(False, frozenset("bc"))}
    assert host_list.chosen(("a", "g+2", "~c"), hosts, groups).ranks == {"a": (0, 0), "b": (-2, 3)}
    assert set(host_list.chosen(("~g",), hosts, groups).ranks) == {"a", "d"}
    assert set(host_list.chosen(("a+1", "others"), hosts, groups).ranks) == set(hosts)
    assert host_list.chosen(("b!", "a"), hosts, groups).first == {"b"}
    assert host_list.chosen(("g!", "a!", "d"), hosts, groups).first == {"a", "b", "c"}
    assert host_list.chosen(("g", "a"), hosts, groups).first is None
    with pytest.raises(Refused, match="expected a host or group"):
        list(host_list.parse(["a+x"]))
