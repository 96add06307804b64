import pytest

from creamtea.store.tables import ItemKind


@pytest.mark.parametrize(
    ("kind", "one", "many"),
    [
        (ItemKind.RATED, "1 rated", "2,000 rated"),
        (ItemKind.RANDOM, "1 drawn at random", "2,000 drawn at random"),
        (ItemKind.REPEAT, "1 repeat", "2,000 repeats"),
        (ItemKind.BAD_REFERENCE, "1 bad reference", "2,000 bad references"),
        (ItemKind.TUTORIAL, "1 practice item", "2,000 practice items"),
        (ItemKind.ATTENTION, "1 attention check", "2,000 attention checks"),
    ],
)
def test_items_of_a_kind_are_counted(kind: ItemKind, one: str, many: str) -> None:
    assert (kind.counted(1), kind.counted(2000)) == (one, many)
    assert kind.label in many
