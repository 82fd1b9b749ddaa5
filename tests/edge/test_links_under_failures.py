"""Two ends of a link over a channel that loses, repeats and reorders, with restarts of both.

A restart loses whatever was not written down: reports that were taken but not logged, and, at the
lower end, all but the log from which the same reports are made again.
"""

from __future__ import annotations

import random

import pyarrow as pa

from paneflow.engines.edge.links import Kept, Receiver, Sender
from paneflow.engines.edge.records import Report
from paneflow.engines.edge.wire import (
    Ack,
    Heartbeat,
    Hello,
    Introduce,
    Message,
    Numbered,
    Refusal,
    Resend,
    Welcome,
    Wire,
)

WIRE = Wire({"part": pa.schema([("x", pa.int64())])})
RUNS = 2000
STEPS = 60


class Channel:
    """Messages on their way in one direction."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.faulty = True
        self.held: list[bytes] = []

    def put(self, data: bytes) -> None:
        copies = self.rng.choice([0, 1, 1, 1, 1, 2]) if self.faulty else 1
        self.held += [data] * copies

    def get(self) -> bytes | None:
        if not self.held:
            return None
        at = self.rng.randrange(min(len(self.held), 3)) if self.faulty else 0
        return self.held.pop(at)


class Lower:
    """A node whose log says how many reports it has made."""

    def __init__(self, rng: random.Random, up: Channel) -> None:
        self.rng, self.up = rng, up
        self.log = 0
        self.snapshot: Kept | None = None
        self.restart()

    def restart(self) -> None:
        self.sender = Sender(WIRE, self.snapshot)
        while self.sender.newest < self.log:
            self.sender.add(Report(self.sender.newest + 1))
        self.say_hello()

    def say_hello(self) -> None:
        session = self.rng.randrange(2**60)
        self.up.put(WIRE.encode(self.sender.hello("lower", "child", "query", session)))

    def report(self) -> None:
        self.log += 1
        assert self.sender.add(Report(self.log)) == self.log

    def send(self) -> None:
        data = self.sender.next()
        if data is not None:
            self.up.put(data)
            self.sender.sent()

    def beat(self) -> None:
        if self.sender.welcome:
            self.up.put(WIRE.encode(self.sender.heartbeat({})))
        else:
            self.say_hello()

    def hear(self, data: bytes) -> None:
        match WIRE.decode(data):
            case Welcome() as answer:
                self.sender.welcomed(answer)
            case Refusal() as answer:
                assert not self.sender.refused(answer), answer.reason
            case Introduce():
                self.say_hello()
            case Ack(upto):
                self.sender.acknowledge(upto)
            case Resend(since):
                self.sender.resend(since)


class Upper:
    """A node whose log holds the reports that it has taken."""

    def __init__(self, down: Channel) -> None:
        self.down = down
        self.log: list[int] = []
        self.restart()

    def restart(self) -> None:
        self.taken: list[int] = []
        self.receiver = Receiver("lower", WIRE, logged=len(self.log))

    def hear(self, data: bytes) -> None:
        message: Message = WIRE.decode(data)
        if isinstance(message, Hello):
            self.down.put(WIRE.encode(self.receiver.greet(message, "query")))
        elif not self.receiver.greeted:
            self.down.put(WIRE.encode(Introduce()))
        elif isinstance(message, Heartbeat):
            self.receiver.hear(message)
        else:
            assert isinstance(message, Numbered)
            assert message.report.watermark == message.number
            if self.receiver.take(message):
                self.taken.append(message.number)
        self.answer()

    def commit(self) -> None:
        self.log += self.taken
        self.taken = []
        self.receiver.log(len(self.log))
        self.answer()

    def answer(self) -> None:
        for message in self.receiver.answers():
            self.down.put(WIRE.encode(message))


def run(seed: int) -> tuple[Lower, Upper]:
    rng = random.Random(seed)
    up, down = Channel(rng), Channel(rng)
    lower, upper = Lower(rng, up), Upper(down)

    def snapshot() -> None:
        lower.snapshot = lower.sender.kept()

    def deliver_up() -> None:
        if (data := up.get()) is not None:
            upper.hear(data)

    def deliver_down() -> None:
        if (data := down.get()) is not None:
            lower.hear(data)

    often = [
        lower.report,
        lower.send,
        lower.send,
        deliver_up,
        deliver_up,
        deliver_down,
        upper.commit,
    ]
    seldom = [lower.beat, snapshot, lower.restart, upper.restart, up.held.clear, down.held.clear]
    for _ in range(STEPS):
        rng.choice(seldom if rng.random() < 0.1 else often)()
    up.faulty = down.faulty = False
    for _ in range(3):
        lower.beat()
        while up.held or down.held or lower.sender.next() is not None:
            lower.send()
            deliver_up()
            deliver_down()
        upper.commit()
        deliver_down()
    return lower, upper


def test_every_report_arrives_exactly_once_and_in_order() -> None:
    reports = 0
    for seed in range(RUNS):
        lower, upper = run(seed)
        assert upper.log == list(range(1, lower.log + 1)), seed
        assert lower.sender.waiting == 0, seed
        reports += lower.log
    assert reports > 5 * RUNS
