"""The example world: an endless mixture of scenes, lawful most of them, as a stream of files.

Scenes are dealt in blocks: in each block of :data:`BLOCK` every unusual scene comes as often as :data:`MIX` says, and
lawful ones fill the rest. So every rule fires several times in any thousand documents, and memory stays flat.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from examples import scenes_events, scenes_files, scenes_flows, scenes_goods, scenes_lawful, scenes_parties
from examples.stage import File, Miss, Scene, Stage, Truth

if TYPE_CHECKING:
    from examples.cast import Cast
    from examples.signing import Authority

Make: TypeAlias = Callable[[Stage], Scene]

#: Scenes in one block.
BLOCK: Final = 320
#: How often each unusual scene comes in a block.
MIX: Final[dict[Make, int]] = {
    scenes_parties.unauthorised_seller: 3,
    scenes_parties.unknown_buyer: 4,
    scenes_parties.implied_resale: 1,
    scenes_parties.inactive_buyer: 3,
    scenes_parties.expired_paper: 2,
    scenes_parties.other_place: 1,
    scenes_parties.moved_shop: 1,
    scenes_parties.other_delivery: 1,
    scenes_flows.other_brand: 4,
    scenes_flows.transition: 1,
    scenes_flows.change_ahead: 1,
    scenes_flows.same_group: 1,
    scenes_flows.between_brands: 4,
    scenes_flows.independent_to_brand: 3,
    scenes_flows.unlisted_source: 1,
    scenes_flows.upstream: 1,
    scenes_flows.foreign_mark: 2,
    scenes_flows.old_no_common: 1,
    scenes_flows.old_not_on_card: 2,
    scenes_flows.old_card_ahead: 1,
    scenes_goods.over_capacity: 8,
    scenes_goods.exactly_full: 2,
    scenes_goods.between_bounds: 2,
    scenes_goods.no_capacity: 2,
    scenes_goods.no_quantity: 1,
    scenes_goods.river_sale: 4,
    scenes_goods.river_too_early: 1,
    scenes_goods.river_ended: 1,
    scenes_goods.river_large: 1,
    scenes_goods.river_south: 1,
    scenes_goods.huge_cylinder: 1,
    scenes_goods.bulk_sale: 1,
    scenes_goods.short_weight: 2,
    scenes_goods.trailer: 1,
    scenes_goods.stranger_carrier: 1,
    scenes_files.schema_invalid: 1,
    scenes_files.wrong_key: 1,
    scenes_files.altered: 1,
    scenes_files.broken: 1,
    scenes_files.unsigned: 1,
    scenes_files.wrong_certificate: 1,
    scenes_files.expired_certificate: 1,
    scenes_files.unknown_authority: 1,
    scenes_files.foreign_protocol: 1,
    scenes_files.conflict: 1,
    scenes_files.duplicate: 2,
    scenes_files.lesser_copy: 1,
    scenes_files.lot: 1,
    scenes_files.soap: 1,
    scenes_files.distributed: 1,
    scenes_files.indented: 1,
    scenes_files.encoded: 3,
    scenes_files.inner_archive: 1,
    scenes_events.cancelled: 2,
    scenes_events.cancelled_overrun: 1,
    scenes_events.cancelled_before: 1,
    scenes_events.cancelled_by_substitution: 1,
    scenes_events.forged_cancellation: 1,
    scenes_events.broken_cancellation: 1,
    scenes_events.refused_cancellation: 1,
    scenes_events.contested: 1,
    scenes_events.acknowledged: 2,
    scenes_events.cancelled_in_protocol: 1,
    scenes_events.cancelled_of_old: 1,
}
#: Hostile files and files of other kinds in a block: they turn through all kinds.
HOSTILE: Final = 3
FOREIGN: Final = 3
#: What fills the rest, by weight.
LAWFUL: Final[dict[Make, int]] = {
    scenes_lawful.stock: 34,
    scenes_lawful.old_stock: 6,
    scenes_lawful.unusual_stock: 10,
    scenes_lawful.household: 26,
    scenes_lawful.business: 8,
    scenes_lawful.direct: 4,
    scenes_lawful.same_brand: 4,
    scenes_lawful.to_independent: 4,
    scenes_lawful.purchase_entry: 2,
    scenes_lawful.no_sale: 6,
}
#: How often a draw is repeated when nobody of the cast fits.
_TRIES: Final = 200


def _draw(stage: Stage, make: Make) -> Scene:
    """One scene; drawn again while nobody fits. Raises RuntimeError when the cast can never play it."""
    for _ in range(_TRIES):
        try:
            return make(stage)
        except Miss:
            continue
    raise RuntimeError(f"the cast cannot play {make.__name__}")


def _block(stage: Stage, turn: Iterator[int]) -> list[Make]:
    """The scenes of one block, shuffled."""
    dealt: list[Make] = [make for make, times in MIX.items() for _ in range(times)]
    for number in itertools.islice(turn, HOSTILE):
        dealt.append(lambda stage, number=number: scenes_files.hostile(stage, number))  # type: ignore[misc]
        dealt.append(lambda stage, number=number: scenes_files.foreign(stage, number))  # type: ignore[misc]
    dealt += stage.random.choices(list(LAWFUL), list(LAWFUL.values()), k=BLOCK - len(dealt))
    stage.random.shuffle(dealt)
    return dealt


def scenes(seed: int, cast: Cast, authority: Authority) -> Iterator[Scene]:
    """Scenes without end."""
    stage = Stage(seed, cast, authority)
    turn = itertools.count()
    while True:
        for make in _block(stage, turn):
            yield _draw(stage, make)


def files(seed: int, cast: Cast, authority: Authority, documents: int) -> Iterator[tuple[File, tuple[Truth, ...]]]:
    """The files of the first ``documents`` scenes, late ones at their time; each scene's truths come with its first."""
    late: list[tuple[int, int, File]] = []
    order = itertools.count()
    for number, scene in enumerate(itertools.islice(scenes(seed, cast, authority), documents)):
        truths = scene.truths
        for file in scene.files:
            if file.later:
                heapq.heappush(late, (number + file.later, next(order), file))
                continue
            yield file, truths
            truths = ()
        while late and late[0][0] <= number:
            yield heapq.heappop(late)[2], ()
    while late:
        yield heapq.heappop(late)[2], ()
