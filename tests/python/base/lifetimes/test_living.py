"""Lists of living objects, which several threads extend while one reads them."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator

import pytest

from headrace._base.lifetimes.weak_list import Living


class Thing:
    """An object whose equality would hide that two are listed as one."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thing)

    __hash__ = None  # type: ignore[assignment]


@pytest.fixture
def impatient() -> Iterator[None]:
    """Threads change after every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_each_object_is_listed_while_it_lives() -> None:
    living: Living[Thing] = Living()
    first, second = Thing(), Thing()
    living.add(first)
    living.add(second)
    assert [id(one) for one in living] == [id(first), id(second)]
    del first
    gc.collect()
    assert [id(one) for one in living] == [id(second)]
    del second
    gc.collect()
    assert list(living) == []


def test_little_is_left_of_the_objects_that_are_gone() -> None:
    living: Living[Thing] = Living()
    kept = [Thing() for _ in range(3)]
    for one in kept:
        living.add(one)
    for _ in range(1000):
        living.add(Thing())
    assert len(living._references) < 50
    assert [id(one) for one in living] == list(map(id, kept))


def test_an_object_that_dies_behind_its_list() -> None:
    living: Living[Thing] = Living()
    one = Thing()
    living.add(one)
    del living
    del one
    gc.collect()


def test_objects_may_be_added_and_dropped_while_the_list_is_read(impatient: None) -> None:
    """A WeakSet raises here: Set changed size during iteration."""
    living: Living[Thing] = Living()
    kept = [Thing() for _ in range(50)]
    for one in kept:
        living.add(one)
    ended, errors = threading.Event(), []

    def change() -> None:
        while not ended.is_set():
            mine = [Thing() for _ in range(20)]
            for one in mine:
                living.add(one)

    def read() -> None:
        wanted = {id(one) for one in kept}
        try:
            for _ in range(400):
                assert wanted <= {id(one) for one in living}
        except BaseException as error:
            errors.append(error)

    writers = [threading.Thread(target=change) for _ in range(2)]
    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in (*writers, *readers):
        thread.start()
    for thread in readers:
        thread.join()
    ended.set()
    for thread in writers:
        thread.join()
    assert not errors, errors[0]
    assert len(list(living)) == len(kept)
