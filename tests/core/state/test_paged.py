"""A paged dictionary has the items of a plain one, on whatever pages."""

from lavad.core.model import Key
from lavad.core.state.paged import Paged

KEYS = [Key(job, index, attempt) for job in (1, 1023, 1024, 5000) for index in (0, 7, 2000) for attempt in (1, 2)]


def test_it_keeps_what_a_dictionary_keeps() -> None:
    """Inserted items are found, counted and listed once; removed ones are not."""
    paged, plain = Paged[str](), dict[Key, str]()
    for key in (*KEYS, *KEYS):
        paged[key] = plain[key] = str(key)
    later = {key._replace(attempt=3): "later" for key in KEYS} | {KEYS[1]: "again"}
    paged.update(later)
    plain.update(later)
    for gone in KEYS[::2]:
        assert paged.pop(gone) == plain.pop(gone)
    assert dict(paged.items()) == plain
    assert set(paged) == set(plain)
    assert sorted(paged.values()) == sorted(plain.values())
    assert len(paged) == len(plain)
    assert [key in paged for key in KEYS] == [key in plain for key in KEYS]
    assert [paged.get(key) for key in KEYS] == [plain.get(key) for key in KEYS]


def test_an_empty_page_is_no_more() -> None:
    """A page is dropped with its last item, which is not found any more."""
    paged = Paged([(key, 1) for key in KEYS])
    for key in KEYS:
        paged.pop(key)
    assert not paged
    assert paged.pop(KEYS[0]) is None
    assert paged.get(KEYS[0]) is None
    assert KEYS[0] not in paged
