"""A Python program with ``cocopt stream`` as a subprocess: the learner lives, and is stored, in a process of its own.

Each hour the output of three machines is set before their costs are known; the demand is known beforehand. The
subprocess is killed half-way, and feedback is sent again under the same id: nothing is lost, nothing counts twice.
"""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

LEARNER = 'algorithm = "clasp", set = {type = "Box", lower = 0, upper = 10, dim = 3}'


class Stream:
    """One request, one answer."""

    def __init__(self, state: Path) -> None:
        command = [sys.executable, "-m", "cocopt", "stream", "--state", str(state), "--learner", LEARNER]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def call(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["message"])
        return answer

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def kill(self) -> None:
        self.process.kill()
        self.close()


def hour(stream: Stream, number: int) -> dict:
    """Asks for a plan that meets the demand, and tells what it has cost."""
    demand = {"type": "Equality", "A": [1, 1, 1], "b": 12 + number % 3}
    plan = stream.call(key="plant", known=demand)
    costs = {"type": "Linear", "c": [1 + number % 2, 2, 3]}
    return stream.call(key="plant", round=plan["round"], loss=costs, id=f"hour {number}") | {"plan": plan["action"]}


def main() -> None:
    """Ten hours, with a kill after the fifth."""
    with TemporaryDirectory() as folder:
        stream = Stream(Path(folder, "plant.db"))
        for number in range(1, 6):
            answer = hour(stream, number)
        stream.kill()
        stream = Stream(Path(folder, "plant.db"))
        again = stream.call(key="plant", round=5, loss={"type": "Linear", "c": [2, 2, 3]}, id="hour 5")
        assert again == {name: answer[name] for name in again}, "the answer of a feedback that was stored before"
        for number in range(6, 11):
            answer = hour(stream, number)
        stream.close()
    print(f"hour 10 was round {answer['round']}: {[round(x, 2) for x in answer['plan']]}, cost {answer['loss']:.2f}")


if __name__ == "__main__":
    main()
