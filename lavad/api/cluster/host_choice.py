"""Hosts that a resource requirement selects: -R of lsload, lshosts, bhosts and lsplace."""

from collections.abc import Sequence

import numpy as np

from lavad.core.cluster import Cluster
from lavad.core.decide.jobs.request import vocabulary_of
from lavad.core.language.requirements import parser
from lavad.core.language.requirements.order import parse as parse_order
from lavad.core.language.requirements.select import Selection
from lavad.core.model.reasons import Refused


def chosen(cluster: Cluster, text: str, names: Sequence[str]) -> list[str]:
    """Return those of the joined hosts that satisfy select[...], sorted by order[...] if there is one.

    Raises:
        Refused: bad syntax, an unknown name, or a requirement of several terms.
    """
    table = cluster.table
    vocabulary = vocabulary_of(cluster.policy, table)
    requirement = parser.parse(text, vocabulary)
    if not requirement.is_simple:
        raise Refused("Bad resource requirement syntax: hosts are selected by one term, without braces")
    truth = Selection(requirement.term.select, vocabulary=vocabulary).truth(table)
    found = [name for name in names if truth[table.rows[name]]]
    if not requirement.term.order:
        return found
    rows = [table.rows[name] for name in found]
    keys = [np.arange(len(rows), dtype=np.float64)]
    for key in reversed(parse_order(requirement.term.order, vocabulary=vocabulary)):
        values = np.asarray(np.broadcast_to(table.values(key.name), (len(table),)), np.float64)[rows]
        keys.append(values if table.is_increasing(key.name) is not key.is_reversed else -values)
    return [found[place] for place in np.lexsort(keys)]
