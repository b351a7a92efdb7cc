#!/bin/sh
# cocopt stream behind a pipe: a budget is split over three services; each day their costs and a limit are revealed.
# Whatever writes lines and reads lines can do this. Run it twice: the second run goes on where the first ended.
set -eu
state=${1:-stream-example.db}

for day in 1 2 3 4 5; do
    echo '{"key": "north"}'
    echo '{"key": "north", "loss": {"type": "Linear", "c": [3, 2, 1]},
        "constraint": {"type": "Affine", "A": [0, 0, 1], "b": 0.6}}' | tr -d '\n'
    echo
done |
    cocopt stream --state "$state" \
        --learner 'algorithm = "clasp", set = {type = "Simplex", dim = 3}'
