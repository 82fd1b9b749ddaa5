"""Kills nodes at random, as losses of power would."""

from __future__ import annotations

import random
import time
from threading import Thread

from tests.edge.running.events import check, push, sensors
from tests.edge.running.real_trees import RealTree


class Killer(Thread):
    """Kills random nodes at random moments, and starts them again, a number of times."""

    def __init__(self, tree: RealTree, seed: int, kills: int) -> None:
        super().__init__()
        self._tree = tree
        self._r = random.Random(seed)
        self._left = kills
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while self._left:
                self._left -= 1
                name = self._r.choice(self._tree.names)
                time.sleep(self._r.random() * 0.1)
                self._tree.kill(name)
                time.sleep(self._r.choice([0.0, 0.0, 0.1]))
                self._tree.start(name)
        except BaseException as error:
            self.failure = error

    def __enter__(self) -> Killer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.join()
        if self.failure is not None:
            raise self.failure


def check_kills(tree: RealTree, seed: int, kills: int) -> None:
    tree.start()
    sources = sensors(tree)
    at = 0
    with Killer(tree, seed, kills) as killer:
        while killer.is_alive():
            push(sources, at, at + 20)
            at += 20
            time.sleep(0.01)
    check(tree, sources, at)
